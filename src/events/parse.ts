import { WebhookError } from '../errors.ts'
import { guarded } from '../internal/guarded.ts'
import { isPromise, type MaybePromise } from '../internal/maybe-promise.ts'
import type { Delivery } from '../receiver/delivery.ts'
import type { EventFields } from './event.ts'
import { type JsonObject, parseJsonObject } from './json.ts'
import { type KeptInput, type KeyInput, keptDelivery, keptHeaders } from './kept-input.ts'
import { givenKey, keyOfId, keyOfPrincipal } from './key.ts'
import type { MediaEvent } from './media-service/catalogue.ts'
import { type AnySender, type Reading, typedBy } from './sender.ts'

/**
 * Where event keys come from instead of the payload: a function, or a header with an id. Body signatures don't cover
 * headers, so whoever can replay a delivery can change that id.
 *
 * The function gets the URL without the token of `urlToken`. Unreadable deliveries keep the headers and the URL that it
 * asks for, so it must ask for no secret. To learn what it asks for, it is also called with an empty event.
 */
export type EventKeySource<Event extends EventFields = MediaEvent> =
  | ((event: Event, delivery: Delivery) => string)
  | { readonly header: string }

/** What the verifier vouches for, or what an unreadable delivery kept. */
export interface Vouched extends KeptInput {
  readonly eventId?: string | undefined
  readonly principal?: string | undefined
}

export interface Parsing {
  readonly sender: AnySender
  readonly keySource: EventKeySource<never> | undefined
  readonly keyInput: KeyInput
}

/**
 * Parses the event of a delivery.
 * @param delivery absent when an unreadable delivery is parsed again: `vouched` has what it kept
 * @throws WebhookError `malformed`
 */
export function parseEvent(
  parsing: Parsing,
  body: Uint8Array,
  delivery?: Delivery,
  vouched?: Vouched,
): MaybePromise<MediaEvent> {
  const payload = parseJsonObject(body)
  const reading = parsing.sender.read(payload, delivery?.headers ?? keptHeaders(vouched))
  return makeEvent(parsing, reading, payload, body, delivery, vouched, 'delivery')
}

/** Computes the event key and builds the event. */
export function makeEvent(
  { sender, keySource, keyInput }: Parsing,
  reading: Reading,
  payload: JsonObject,
  body: Uint8Array,
  delivery: Delivery | undefined,
  vouched: Vouched | undefined,
  source: MediaEvent['source'],
): MaybePromise<MediaEvent> {
  const id =
    (typeof keySource === 'object' && (delivery?.headers ?? keptHeaders(vouched)).get(keySource.header)) ||
    reading.id ||
    vouched?.eventId
  const origin = { source, principal: vouched?.principal || undefined }
  const own = id ? keyOfId(id) : sender.makeKey(reading, body)
  const key = origin.principal === undefined ? own : keyOfPrincipal(origin.principal, own)
  const event = isPromise(key)
    ? key.then((each) => sender.toEvent(reading, each, origin, payload))
    : sender.toEvent(reading, key, origin, payload)
  if (typeof keySource !== 'function') return event
  return delivery === undefined
    ? // Asking for what was not kept throws. The default key then: a constant would merge many events.
      withKeyFrom(keySource, sender, event, keptDelivery(vouched, body)).catch(() => event)
    : withKeyFrom(keySource, sender, event, keyInput.watch(delivery))
}

async function withKeyFrom(
  source: (event: never, delivery: Delivery) => string,
  sender: AnySender,
  parsed: MaybePromise<MediaEvent>,
  delivery: Delivery,
): Promise<MediaEvent> {
  const event = await parsed
  const key = source(typedBy(sender, event) as never, delivery)
  if (isPromise(key)) throw asyncKey(key)
  return key === event.key ? event : Object.freeze({ ...event, key: await givenKey(key) })
}

function asyncKey(key: Promise<unknown>): WebhookError {
  // An unhandled rejection would end the process.
  key.then(undefined, () => {})
  return new WebhookError('internal', 'the receiver failed', {
    cause: 'eventKey returned a promise: it must return a string and cannot be async',
  })
}

/** Selects what an unreadable delivery keeps beside its body. */
export function keepInput({ sender, keySource, keyInput }: Parsing, delivery: Delivery): KeptInput {
  // This delivery may have failed before anything asked for its headers. `{}` could be a payload too.
  guarded(() => sender.read({}, delivery.headers), ignore)
  if (typeof keySource === 'function') guarded(() => keySource(noEvent as never, keyInput.watch(delivery)), ignore)
  const ofKey = typeof keySource === 'object' ? [keySource.header.toLowerCase()] : keyInput.headers
  const names = [...new Set([...sender.headers, ...ofKey])].sort()
  const headers = Object.fromEntries(names.map((name) => [name, delivery.headers.get(name)]))
  return {
    ...(names.length > 0 && { headers }),
    ...(keyInput.asksUrl && { url: keyInput.withoutToken(delivery.url) }),
  }
}

function ignore(): void {}

const noEvent = Object.freeze({
  type: '',
  key: '',
  format: 'flat',
  source: 'delivery',
  mediaId: '',
  qualities: [],
  test: false,
  issues: [],
  payload: {},
  data: {},
})
