import type { Delivery, DeliveryHeaders, ParsedBody } from '../delivery.ts'
import { WebhookError } from '../errors.ts'
import { isPromise, type MaybePromise } from '../internal/maybe-promise.ts'
import type { EventFields } from './event.ts'
import { checkJsonObject, type JsonObject, parseJsonObject } from './json.ts'
import { givenKey, keyOfId, keyOfPrincipal } from './key.ts'
import type { MediaEvent } from './media-service/catalogue.ts'
import { type AnySender, type Reading, typedBy } from './sender.ts'

/**
 * Where event keys come from instead of the payload: a function, or a header with an id. Body signatures don't cover
 * headers, so whoever can replay a delivery can change that id.
 */
export type EventKeySource<Event extends EventFields = MediaEvent> =
  | ((event: Event, delivery: Delivery) => string)
  | { readonly header: string }

/** What the verifier vouches for, or what an unreadable delivery kept. */
export interface Vouched {
  readonly eventId?: string | undefined
  readonly principal?: string | undefined
  readonly headers?: Readonly<Record<string, string>> | undefined
}

export interface Parsing {
  readonly sender: AnySender
  readonly keySource: EventKeySource<never> | undefined
}

/**
 * Parses the event of a delivery.
 * @param delivery absent when an unreadable delivery is parsed again: its URL and most headers were not kept
 * @throws WebhookError `malformed`
 */
export function parseEvent(
  parsing: Parsing,
  body: Uint8Array | ParsedBody,
  delivery?: Delivery,
  vouched?: Vouched,
): MaybePromise<MediaEvent> {
  // Copied: the application owns the parsed body and may change it.
  const payload = ArrayBuffer.isView(body) ? parseJsonObject(body) : { ...checkJsonObject(body.parsed) }
  const reading = parsing.sender.read(payload, delivery?.headers ?? keptHeaders(vouched))
  return makeEvent(parsing, reading, payload, body, delivery, vouched, 'delivery')
}

export const noHeaders: DeliveryHeaders = { get: () => null }

// Not `Headers`: it throws for values that some servers accept.
function keptHeaders(vouched: Vouched | undefined): DeliveryHeaders {
  if (vouched?.headers === undefined) return noHeaders
  const kept = new Map(Object.entries(vouched.headers))
  return { get: (name) => kept.get(name.toLowerCase()) ?? null }
}

/** Computes the event key and builds the event. */
export function makeEvent(
  { sender, keySource }: Parsing,
  reading: Reading,
  payload: JsonObject,
  body: Uint8Array | ParsedBody,
  delivery: Delivery | undefined,
  vouched: Vouched | undefined,
  source: MediaEvent['source'],
): MaybePromise<MediaEvent> {
  const id =
    (typeof keySource === 'object' && delivery?.headers.get(keySource.header)) || reading.id || vouched?.eventId
  const origin = { source, principal: vouched?.principal || undefined }
  const own = id ? keyOfId(id) : sender.keyOf(reading, body)
  const key = origin.principal === undefined ? own : keyOfPrincipal(origin.principal, own)
  const event = isPromise(key)
    ? key.then((each) => sender.toEvent(reading, each, origin, payload))
    : sender.toEvent(reading, key, origin, payload)
  return typeof keySource === 'function' ? withKeyFrom(keySource, sender, event, delivery) : event
}

async function withKeyFrom(
  source: (event: never, delivery: Delivery) => string,
  sender: AnySender,
  parsed: MaybePromise<MediaEvent>,
  delivery: Delivery | undefined,
): Promise<MediaEvent> {
  const event = await parsed
  try {
    const key = source(typedBy(sender, event) as never, delivery as Delivery)
    if (isPromise(key)) throw asyncKey(key)
    return key === event.key ? event : Object.freeze({ ...event, key: await givenKey(key) })
  } catch (error) {
    // Unreadable deliveries are parsed again without a delivery, so a function that reads it throws. Keep the default
    // key: a constant would merge many events.
    if (delivery === undefined) return event
    throw error
  }
}

function asyncKey(key: Promise<unknown>): WebhookError {
  // An unhandled rejection would end the process.
  key.then(undefined, () => {})
  return new WebhookError('internal', 'the receiver failed', {
    cause: 'eventKey returned a promise: it must return a string and cannot be async',
  })
}
