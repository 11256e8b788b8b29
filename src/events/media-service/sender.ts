import type { MaybePromise } from '../../internal/maybe-promise.ts'

import type { UnknownEventType } from '../event.ts'
import { type JsonObject, jsonTypes, parseJsonObject, readTime } from '../json.ts'
import { bounded, keyOfBody } from '../key.ts'
import type { Origin } from '../sender.ts'
import type { MediaService } from '../types.ts'
import { eventTypes, type MediaEvent } from './catalogue.ts'
import { toPayload } from './lookup.ts'
import { readWireEvent, type WireEvent } from './wire.ts'

export const mediaService: MediaService = {
  name: 'media-service',
  types: eventTypes,
  headers: [],
  body: { ...jsonTypes, parse: parseJsonObject, write: JSON.stringify },
  read: readWireEvent,
  readLookup(found) {
    const payload = toPayload(found as never)
    return { reading: readWireEvent(payload), payload }
  },
  makeKey,
  toEvent,
  comparable,
  varying: ['emitted_at', 'emittedAt'],
  keyed: ['type', 'media_id', 'user_id', 'emitted_at', 'qualities', 'status'],
}

/**
 * Derives the event key. Deliveries carry no id, but retries were observed to repeat `emitted_at` to the nanosecond, so
 * its raw text is part of the key. Without it, or with a field of the wrong type, hashes the body.
 */
function makeKey(event: WireEvent, body: Uint8Array): MaybePromise<string> {
  const { type, mediaId, userId = '', emittedAt, qualities = '', status = '', issues } = event
  if (emittedAt === undefined || issues.length > 0) return keyOfBody(body)
  // JSON is unambiguous and escapes lone surrogates, which UTF-8 would make equal.
  return bounded(JSON.stringify([type, mediaId, userId, emittedAt, qualities, status]))
}

/** Media id of the service's test delivery. */
const nilMediaId = '00000000-0000-0000-0000-000000000000'

/** Freezes the event and its lists, as the payload is: all handlers share one object. */
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
    payload,
  }
  return Object.freeze(
    wire.type === 'partial.finished' ? { ...fields, type: wire.type, quality: fields.qualities[0] } : fields,
  )
}

function readQualities(sent: string | readonly string[] = ''): readonly string[] {
  const names = (typeof sent === 'string' ? sent.split(',') : sent).map((name) => name.trim())
  return names.includes('') ? names.filter(Boolean) : names
}

/** Flattens an envelope's `data`. */
function comparable({ format, payload }: MediaEvent): JsonObject {
  return format === 'flat' ? payload : { ...payload, ...(payload['data'] as JsonObject), data: undefined }
}
