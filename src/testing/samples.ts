import { type EventType, eventTypes } from '../events/catalogue.ts'
import { checkChoice } from '../internal/check-options.ts'
import { bodyOf, type Payload, qualitiesAndStatus } from './payload.ts'

export type { Payload }

/**
 * A payload as the service writes it. Without `fields` it is always the same event; other values for `media_id` or
 * `emitted_at` make it another.
 * @throws WebhookError `invalid_option` for a type that is not in the catalogue
 */
export function samplePayload(type: EventType, fields: Partial<Payload> = {}): Payload {
  checkChoice('samplePayload', 'type', type, eventTypes)
  return {
    type,
    emitted_at: '2026-03-01T12:00:00.123456789Z',
    media_id: '0f8fad5b-d9cb-469f-a165-70867728950e',
    ...qualitiesAndStatus(type, type === 'partial.finished' ? ['360p'] : ['360p', '720p']),
    title: 'holiday.mp4',
    media_type: 'video',
    user_id: '7c9e6679-7425-40de-944b-e07fc1f90ae7',
    ...fields,
  }
}

/** The bytes of a payload in one of the wire formats. */
export function encodePayload(payload: Payload, format?: 'flat' | 'envelope'): Uint8Array {
  return new TextEncoder().encode(bodyOf(payload, format))
}
