import { type EventType, eventTypes } from '../events/media-service/catalogue.ts'
import { checkOptions, oneOf, required } from '../internal/check-options.ts'
import { encoder } from '../internal/utf8.ts'
import { makeBody, type Payload, qualitiesAndStatus } from './payload.ts'

export type { Payload }

/**
 * Returns a sample payload as the service writes it. The same arguments always give the same event; another `media_id`
 * or `emitted_at` gives another event.
 *
 * ```ts
 * samplePayload('encoding.finished', { media_id: 'media-1', title: 'Holiday.mp4' })
 * ```
 * @param fields override the sample's
 * @throws WebhookError `invalid_option` if the type is not in the catalogue
 */
export function samplePayload(type: EventType, fields: Partial<Payload> = {}): Payload {
  checkOptions('samplePayload', { type }, { type: required(oneOf(...eventTypes)) })
  return {
    type,
    emitted_at: '2026-03-01T12:00:00.123456789Z',
    media_id: '0f8fad5b-d9cb-469f-a165-70867728950e',
    ...qualitiesAndStatus(type, ['360p', '720p']),
    title: 'holiday.mp4',
    media_type: 'video',
    user_id: '7c9e6679-7425-40de-944b-e07fc1f90ae7',
    ...fields,
  }
}

/**
 * Encodes a payload as a delivery body.
 * @param format the wire format (default: `flat`)
 * @throws WebhookError `invalid_option` for any other format
 */
export function encodePayload(payload: Payload, format: 'flat' | 'envelope' = 'flat'): Uint8Array {
  checkOptions('encodePayload', { format }, { format: oneOf('flat', 'envelope') })
  return encoder.encode(makeBody(payload, format))
}
