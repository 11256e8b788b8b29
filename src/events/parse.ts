import { WebhookError } from '../errors.ts'
import { guarded } from '../internal/guarded.ts'
import { isPromise, type MaybePromise } from '../internal/maybe-promise.ts'
import { encoder } from '../internal/utf8.ts'
import type { Delivery, DeliveryHeaders } from '../receiver/delivery.ts'
import type { EventFields } from './event.ts'
import { decodeText, frozenPayload, type JsonObject } from './json.ts'
import { type KeptInput, type KeyInput, keptDelivery, keptHeaders } from './kept-input.ts'
import { givenKey, keyOfId, keyOfPrincipal } from './key.ts'
import type { MediaEvent } from './media-service/catalogue.ts'
import { type AnySender, type ListedReading, type Reading, typedBy } from './sender.ts'

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
  /** Maximum values in a payload. */
  readonly maxValues: number
  /** Warns of events that look alike: {@link AnySender.alikeWarning}. */
  readonly warn?: ((warning: string) => void) | undefined
}

/** What a delivery brings: an event, or a list of them, which may be empty. */
export type ParsedDelivery = MediaEvent | readonly MediaEvent[]

export const isList = (parsed: ParsedDelivery): parsed is readonly MediaEvent[] => Array.isArray(parsed)

/**
 * Parses a delivery.
 * @param delivery absent when an unreadable delivery is parsed again: `vouched` has what it kept
 * @throws WebhookError `malformed`
 */
export function parseDelivery(
  parsing: Parsing,
  body: Uint8Array,
  delivery?: Delivery,
  vouched?: Vouched,
): MaybePromise<ParsedDelivery> {
  const headers = delivery?.headers ?? keptHeaders(vouched)
  const text = decodeText(body)
  const payload = parsePayload(parsing, text, headers)
  const read = parsing.sender.read(payload, headers, text)
  if (read === undefined) return noEvents
  const source = 'delivery'
  if (!isListed(read)) return makeEvent(parsing, { reading: read, payload, body, delivery, vouched, source })
  const events = read.map(({ reading, payload }, place) =>
    makeEvent(parsing, { reading, payload, body: encodeJson(payload), delivery, vouched, source, place }),
  )
  return events.some(isPromise) ? Promise.all(events) : (events as MediaEvent[])
}

const encodeJson = (payload: JsonObject): Uint8Array => encoder.encode(JSON.stringify(payload))

const noEvents: readonly MediaEvent[] = Object.freeze([])

const isListed = (read: Reading | readonly ListedReading[]): read is readonly ListedReading[] => Array.isArray(read)

/** @throws WebhookError `malformed` */
export const parsePayload = ({ sender, maxValues }: Parsing, text: string, headers: DeliveryHeaders): JsonObject =>
  frozenPayload(sender.body.parse(text, headers), maxValues)

/** What an event is made of. */
interface EventInput extends ListedReading {
  /** The bytes of the payload. */
  readonly body: Uint8Array
  readonly delivery: Delivery | undefined
  readonly vouched: Vouched | undefined
  readonly source: MediaEvent['source']
  /** The place of the event in a list: an id of the delivery is not that of each event. */
  readonly place?: number
}

/** An id of the whole delivery, as that of the event in this place. */
const placed = (id: string | false | null | undefined, place: number | undefined) =>
  id && place !== undefined ? JSON.stringify([id, place]) : id

/** Computes the event key and builds the event. */
export function makeEvent(parsing: Parsing, input: EventInput): MaybePromise<MediaEvent> {
  const { sender, keySource, keyInput, warn } = parsing
  const { reading, payload, body, delivery, vouched, source, place } = input
  const id =
    placed(typeof keySource === 'object' && (delivery?.headers ?? keptHeaders(vouched)).get(keySource.header), place) ||
    reading.id ||
    placed(vouched?.eventId, place)
  const warning = id || source === 'lookup' ? undefined : sender.alikeWarning?.(reading)
  if (warning !== undefined) warn?.(warning)
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
  guarded(() => sender.read({}, delivery.headers, ''), ignore)
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
