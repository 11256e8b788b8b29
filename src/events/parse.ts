import { sha256 } from '#crypto'
import type { Delivery, ParsedBody } from '../delivery.ts'
import { WebhookError } from '../errors.ts'
import { isPromise, type MaybePromise } from '../internal/maybe-promise.ts'
import type { MediaEvent, UnknownEventType } from './media-service/catalogue.ts'
import { checkJsonObject, type JsonObject, parseJsonObject } from './json.ts'
import { readWireEvent, type WireEvent } from './media-service/wire.ts'

/**
 * A source of event keys other than the payload: a function, or a header that carries an id. A signature of the body
 * does not cover a header, so anyone who can repeat a delivery can give it another id.
 */
export type EventKeySource = ((event: MediaEvent, delivery: Delivery) => string) | { readonly header: string }

/** The facts that the verifier vouches for. */
export interface Vouched {
  readonly eventId?: string | undefined
  readonly principal?: string | undefined
}

/**
 * Parses the event of a delivery.
 * @param body its bytes, or the value that another parser made of them
 * @param delivery `undefined` for an unreadable delivery that is parsed again: its URL and headers were not kept
 * @param vouched the id and the principal that the verifier vouches for
 * @throws WebhookError `malformed`
 */
export function parseEvent(
  body: Uint8Array | ParsedBody,
  delivery: Delivery | undefined,
  vouched: Vouched | undefined,
  keySource: EventKeySource | undefined,
  source: MediaEvent['source'] = 'delivery',
): MaybePromise<MediaEvent> {
  // The value of another parser belongs to the application, which may change it. So the event gets a copy.
  const payload = ArrayBuffer.isView(body) ? parseJsonObject(body) : { ...checkJsonObject(body.parsed) }
  const wire = readWireEvent(payload)
  const id = (typeof keySource === 'object' && delivery?.headers.get(keySource.header)) || vouched?.eventId
  const origin = { source, principal: vouched?.principal || undefined }
  const own = id ? givenKey(id) : payloadKey(wire, body)
  const key = origin.principal === undefined ? own : keyOfPrincipal(origin.principal, own)
  const event = isPromise(key)
    ? key.then((each) => toMediaEvent(wire, each, origin, payload))
    : toMediaEvent(wire, key, origin, payload)
  return typeof keySource === 'function' ? withKeyFrom(keySource, event, delivery) : event
}

async function withKeyFrom(
  source: (event: MediaEvent, delivery: Delivery) => string,
  parsed: MaybePromise<MediaEvent>,
  delivery: Delivery | undefined,
): Promise<MediaEvent> {
  const event = await parsed
  try {
    const key = source(event, delivery as Delivery)
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

/** Maximum length of a key that is kept as it is, in UTF-16 code units, so that stores need no limit of their own. */
const maxKeyLength = 256

/**
 * The event key, equal for two deliveries of one event. Deliveries carry no id, but every retry was observed to repeat
 * `emitted_at` to the nanosecond, so its raw text is part of the key. Without it, or with a field of another JSON type,
 * the key is a hash of the body's own bytes: different JSON can parse to the same number.
 */
function payloadKey(event: WireEvent, body: Uint8Array | ParsedBody): MaybePromise<string> {
  const { type, mediaId, userId = '', emittedAt, qualities = '', status = '', issues } = event
  if (emittedAt === undefined || issues.length > 0)
    return hashed(ArrayBuffer.isView(body) ? body : JSON.stringify(body.parsed))
  // JSON makes the list unambiguous, and escapes lone surrogates, which would otherwise all be alike in UTF-8.
  return bounded(JSON.stringify([type, mediaId, userId, emittedAt, qualities, status]))
}

/**
 * Checks and shortens a key that a verifier, a header or the user's function gave.
 * @throws WebhookError `internal` when it is not a non-empty string
 */
function givenKey(key: string): MaybePromise<string> {
  if (typeof key !== 'string' || key === '') {
    throw new WebhookError('internal', 'the receiver failed', { cause: 'eventKey has to return a non-empty string' })
  }
  return bounded(key)
}

/** Two tenants can send the same event, and one could send the id of another's event. They must not share a key. */
const keyOfPrincipal = (principal: string, key: MaybePromise<string>): MaybePromise<string> =>
  isPromise(key) ? key.then((each) => keyOfPrincipal(principal, each)) : bounded(JSON.stringify([principal, key]))

const bounded = (key: string): MaybePromise<string> => (key.length <= maxKeyLength ? key : hashed(JSON.stringify(key)))

function hashed(content: string | Uint8Array): MaybePromise<string> {
  const digest: MaybePromise<string> = sha256(content)
  return isPromise(digest) ? digest.then(hashText) : hashText(digest)
}

const hashText = (digest: string): string => `sha256:${digest}`

/** The media id of the service's test delivery. */
const nilMediaId = '00000000-0000-0000-0000-000000000000'

/** Makes the event. All of its handlers get the same object, so it is frozen, with its lists and the top of its payload. */
function toMediaEvent(
  wire: WireEvent,
  key: string,
  { source, principal }: Pick<MediaEvent, 'source' | 'principal'>,
  payload: JsonObject,
): MediaEvent {
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

// Requires an offset: a time without one would be read in this machine's time zone.
const rfc3339 = /^\d{4}-\d\d-\d\dT[\d:.]+(?:Z|[+-]\d\d:\d\d)$/

// Every engine parses RFC 3339 as the service writes it, fractions beyond milliseconds included, but guesses at other
// formats. A time that cannot be parsed must not lose the event. It stays in the payload.
export function readTime(sent: string | number | undefined): Date | undefined {
  if (typeof sent === 'number') return readEpoch(sent)
  if (sent === undefined || !rfc3339.test(sent)) return undefined
  const date = new Date(sent)
  return Number.isNaN(date.getTime()) ? undefined : date
}

// From September 2001 to the year 5138, seconds and milliseconds since the epoch cannot be confused. Any other number
// is probably not such a time.
function readEpoch(number: number): Date | undefined {
  if (number >= 1e9 && number < 1e11) return new Date(number * 1_000)
  return number >= 1e12 && number < 1e14 ? new Date(number) : undefined
}
