import { envelopeBody, flatBody, type Payload } from '../emulator/payload.ts'
import { WebhookError } from '../errors.ts'
import type { EventType } from '../events/catalogue.ts'

export type { Payload }

/** What the service writes into the fields that change over the life of a media. */
const bodies: Record<EventType, Pick<Payload, 'qualities' | 'status'>> = {
  'file.received': { qualities: '360p,720p', status: 'new' },
  'encoding.started': { qualities: '', status: 'transcoding' },
  'partial.finished': { qualities: '360p', status: '' },
  'encoding.finished': { qualities: '360p,720p', status: 'done' },
  'encoding.failed': { qualities: '360p,720p', status: 'fail' },
}

/**
 * A payload as the service writes it. Without `fields` it is always the same event; other values for `media_id` or
 * `emitted_at` make it another.
 * @throws WebhookError `invalid_option` for a type that is not in the catalogue
 */
export function samplePayload(type: EventType, fields: Partial<Payload> = {}): Payload {
  if (!Object.hasOwn(bodies, type)) {
    throw new WebhookError('invalid_option', `samplePayload: the types are ${Object.keys(bodies).join(', ')}`)
  }
  return {
    type,
    emitted_at: '2026-03-01T12:00:00.123456789Z',
    media_id: '0f8fad5b-d9cb-469f-a165-70867728950e',
    ...bodies[type],
    title: 'holiday.mp4',
    media_type: 'video',
    user_id: '7c9e6679-7425-40de-944b-e07fc1f90ae7',
    ...fields,
  }
}

/** The bytes of a payload in one of the wire formats. */
export function encodePayload(payload: Payload, format: 'flat' | 'envelope' = 'flat'): Uint8Array {
  return new TextEncoder().encode(format === 'flat' ? flatBody(payload) : envelopeBody(payload))
}
