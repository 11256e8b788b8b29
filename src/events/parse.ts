import type { Delivery } from '../delivery.ts'
import { isPromise, type MaybePromise } from '../internal/maybe-promise.ts'
import type { MediaEvent, UnknownEventType } from './catalogue.ts'
import type { JsonObject } from './json.ts'
import { givenKey, payloadKey } from './key.ts'
import { readWireEvent, type WireEvent } from './wire.ts'

/**
 * Where an event key comes from instead of the payload: a function, or a header that carries an id. A header is not
 * part of what a signature of the body covers: whoever can repeat a delivery can give it another one.
 */
export type EventKeySource = ((event: MediaEvent, delivery: Delivery) => string) | { readonly header: string }

/**
 * Reads the event of a delivery.
 * @param eventId the id that the verifier vouches for
 * @throws WebhookError `malformed`
 */
export function parseEvent(
  payload: JsonObject,
  delivery: Delivery,
  eventId: string | undefined,
  source: EventKeySource | undefined,
): MaybePromise<MediaEvent> {
  const wire = readWireEvent(payload)
  const id = (typeof source === 'object' && delivery.headers.get(source.header)) || eventId
  const key = id ? givenKey(id) : payloadKey(wire, payload)
  const event = isPromise(key)
    ? key.then((each) => toMediaEvent(wire, each, payload))
    : toMediaEvent(wire, key, payload)
  return typeof source === 'function' ? withKeyFrom(source, event, delivery) : event
}

async function withKeyFrom(
  source: (event: MediaEvent, delivery: Delivery) => string,
  parsed: MaybePromise<MediaEvent>,
  delivery: Delivery,
): Promise<MediaEvent> {
  const event = await parsed
  return { ...event, key: await givenKey(source(event, delivery)) }
}

/** The media id of the service's test delivery. */
const nilMediaId = '00000000-0000-0000-0000-000000000000'

/** Makes the typed event of what stood on the wire. */
function toMediaEvent(wire: WireEvent, key: string, payload: JsonObject): MediaEvent {
  const fields = {
    type: wire.type as UnknownEventType,
    key,
    format: wire.format,
    emittedAt: readTime(wire.emittedAt),
    mediaId: wire.mediaId,
    mediaType: wire.mediaType,
    qualities: readQualities(wire.qualities),
    title: wire.title,
    status: wire.status,
    userId: wire.userId,
    test: wire.mediaId === nilMediaId,
    payload,
  }
  return wire.type === 'partial.finished' ? { ...fields, type: wire.type, quality: fields.qualities[0] } : fields
}

const readQualities = (text: string | undefined): readonly string[] =>
  text === undefined
    ? []
    : text
        .split(',')
        .map((name) => name.trim())
        .filter((name) => name !== '')

// With its offset: without one it would be read in the zone of whatever machine this is.
const rfc3339 = /^\d{4}-\d\d-\d\dT[\d:.]+(?:Z|[+-]\d\d:\d\d)$/

// Of RFC 3339 every engine reads all that the service writes, fractions beyond milliseconds included; of other texts
// each guesses in its own way. One that is no time is no reason to lose the event: it stays in the payload.
function readTime(text: string | undefined): Date | undefined {
  if (text === undefined || !rfc3339.test(text)) return undefined
  const date = new Date(text)
  return Number.isNaN(date.getTime()) ? undefined : date
}
