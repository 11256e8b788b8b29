import type { ParsedBody } from '../../delivery.ts'
import type { MaybePromise } from '../../internal/maybe-promise.ts'
import type { UnknownEventType } from '../event.ts'
import type { JsonObject } from '../json.ts'
import { readTime } from '../json.ts'
import { bounded, keyOfBody } from '../key.ts'
import type { Origin } from '../sender.ts'
import type { MediaService } from '../types.ts'
import { eventTypes, type MediaEvent } from './catalogue.ts'
import { toPayload } from './lookup.ts'
import { readWireEvent, type WireEvent } from './wire.ts'

/** The media service, in both wire formats. */
export const mediaService: MediaService = {
  name: 'media-service',
  types: eventTypes,
  headers: [],
  read: readWireEvent,
  readLookup(found) {
    const payload = toPayload(found as never)
    return { reading: readWireEvent(payload), payload }
  },
  keyOf,
  toEvent,
  comparable,
}

/**
 * The event key, equal for two deliveries of one event. Deliveries carry no id, but every retry was observed to repeat
 * `emitted_at` to the nanosecond, so its raw text is part of the key. Without it, or with a field of another JSON type,
 * the body's own bytes are the key.
 */
function keyOf(event: WireEvent, body: Uint8Array | ParsedBody): MaybePromise<string> {
  const { type, mediaId, userId = '', emittedAt, qualities = '', status = '', issues } = event
  if (emittedAt === undefined || issues.length > 0) return keyOfBody(body)
  // JSON makes the list unambiguous, and escapes lone surrogates, which would otherwise all be alike in UTF-8.
  return bounded(JSON.stringify([type, mediaId, userId, emittedAt, qualities, status]))
}

/** The media id of the service's test delivery. */
const nilMediaId = '00000000-0000-0000-0000-000000000000'

/** Makes the event. All of its handlers get the same object, so it is frozen, with its lists and the top of its payload. */
function toEvent(wire: WireEvent, key: string, { source, principal }: Origin, payload: JsonObject): MediaEvent {
  const fields = {
    type: wire.type as UnknownEventType,
    key,
    format: wire.format,
    source,
    emittedAt: readTime(wire.emittedAt),
    mediaId: wire.mediaId,
    mediaType: wire.mediaType,
    qualities: Object.freeze(readQualities(wire.qualities)),
    title: wire.title,
    status: wire.status,
    userId: wire.userId,
    principal,
    test: wire.mediaId === nilMediaId,
    issues: Object.freeze(wire.issues),
    payload: Object.freeze(payload),
  }
  return Object.freeze(
    wire.type === 'partial.finished' ? { ...fields, type: wire.type, quality: fields.qualities[0] } : fields,
  )
}

const readQualities = (sent: string | readonly string[] = ''): readonly string[] =>
  (typeof sent === 'string' ? sent.split(',') : sent)
    .map((name) => name.trim())
    .filter(Boolean)
    // `filter` leaves spare room in its array. The copy has none: a waiting event takes 100 bytes less.
    .slice()

/** The fields of an envelope's `data` count as well. A repeated delivery may have a time of its own. */
function comparable({ format, payload }: MediaEvent): JsonObject {
  const data = format === 'envelope' && { ...(payload['data'] as JsonObject), data: undefined }
  return { ...payload, ...data, emitted_at: undefined, emittedAt: undefined }
}
