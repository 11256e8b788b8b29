import type { Delivery, DeliveryHeaders, ParsedBody } from '../delivery.ts'
import { WebhookError } from '../errors.ts'
import { isPromise, type MaybePromise } from '../internal/maybe-promise.ts'
import type { EventFields } from './event.ts'
import { checkJsonObject, type JsonObject, parseJsonObject } from './json.ts'
import { givenKey, keyOfPrincipal } from './key.ts'
import type { MediaEvent } from './media-service/catalogue.ts'
import { type AnySender, type Reading, typedBy } from './sender.ts'

/**
 * A source of event keys other than the payload: a function, or a header that carries an id. A signature of the body
 * does not cover a header, so anyone who can repeat a delivery can give it another id.
 */
export type EventKeySource<Event extends EventFields = MediaEvent> =
  | ((event: Event, delivery: Delivery) => string)
  | { readonly header: string }

/** The facts that the verifier vouches for, or that an unreadable delivery has kept. */
export interface Vouched {
  readonly eventId?: string | undefined
  readonly principal?: string | undefined
  readonly headers?: Readonly<Record<string, string>> | undefined
}

/** How the events of a receiver are parsed. */
export interface Parsing {
  readonly sender: AnySender
  readonly keySource: EventKeySource<never> | undefined
}

/**
 * Parses the event of a delivery.
 * @param body its bytes, or the value that another parser made of them
 * @param delivery `undefined` for an unreadable delivery that is parsed again: its URL was not kept, nor most of its headers
 * @param vouched the id and the principal that the verifier vouches for
 * @throws WebhookError `malformed`
 */
export function parseEvent(
  parsing: Parsing,
  body: Uint8Array | ParsedBody,
  delivery?: Delivery,
  vouched?: Vouched,
): MaybePromise<MediaEvent> {
  // The value of another parser belongs to the application, which may change it. So the event gets a copy.
  const payload = ArrayBuffer.isView(body) ? parseJsonObject(body) : { ...checkJsonObject(body.parsed) }
  const reading = parsing.sender.read(payload, delivery?.headers ?? keptHeaders(vouched))
  return makeEvent(parsing, reading, payload, body, delivery, vouched, 'delivery')
}

export const noHeaders: DeliveryHeaders = { get: () => null }

// Not `Headers`: it throws for values that some servers let pass.
function keptHeaders(vouched: Vouched | undefined): DeliveryHeaders {
  if (vouched?.headers === undefined) return noHeaders
  const kept = new Map(Object.entries(vouched.headers))
  return { get: (name) => kept.get(name.toLowerCase()) ?? null }
}

/** Makes the event of what its sender has read. */
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
  const own = id ? givenKey(id) : sender.keyOf(reading, body)
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
    return Object.freeze({ ...event, key: await givenKey(key) })
  } catch (error) {
    // A function that reads the delivery fails without it, so the default key stays: a constant would merge many
    // events.
    if (delivery === undefined) return event
    throw error
  }
}

function asyncKey(key: Promise<unknown>): WebhookError {
  // Its rejection would end the process.
  key.then(undefined, () => {})
  return new WebhookError('internal', 'the receiver failed', {
    cause: 'eventKey returned a promise: it has to return a string, and cannot be async',
  })
}
