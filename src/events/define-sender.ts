import { WebhookError } from '../errors.ts'
import { aFunction, aPlainObject, checkOptions, oneOf, type Rules, required, text } from '../internal/check-options.ts'
import { isPromise, whenever } from '../internal/maybe-promise.ts'
import type { DeliveryHeaders } from '../receiver/delivery.ts'
import { type BodyOptions, bodyRules, formatOf } from './body.ts'
import { type Challenge, Handshakes } from './challenge.ts'
import { checkSchema, validate } from './data.ts'
import type { UnknownEventType } from './event.ts'
import { acceptList } from './event-list.ts'
import { deepFreeze, inOrder, isDate, isObject, type JsonObject, readTime, withoutPrototypes } from './json.ts'
import { recordHeaders } from './kept-input.ts'
import { bounded, keyOfBody } from './key.ts'
import { wrongLookup } from './lookup.ts'
import type { MediaEvent } from './media-service/catalogue.ts'
import type { AnySender, ListedReading, Reading } from './sender.ts'
import type { Sender, SenderLookup, StandardSchema } from './types.ts'

/** Your own sender. */
export interface SenderDefinition<Data> extends BodyOptions {
  /** Name in logs and error messages, such as `mux`. */
  readonly name: string
  /**
   * A schema of `event.data` per event type: zod, valibot, arktype or any Standard Schema, but not async. Other types
   * reach only `onAny`.
   */
  readonly events: { readonly [Type in keyof Data]: StandardSchema<Data[Type]> }
  /**
   * Reads a payload. If it throws, the delivery is `malformed`: answered 400 and kept as unreadable. Return a list if a
   * delivery brings several events, at most 1,000: they are stored in one step, where the inbox has one. Return `undefined` if
   * there is nothing to handle, such as for a ping: the delivery is answered 200 `ignored`.
   * @param payload the JSON as sent, frozen, without prototypes and `__proto__`. Numbers that JavaScript would round are
   * strings. A form is an object of strings
   * @param headers for senders that put the type or id there. Unreadable deliveries keep each header you read, so read
   * no secret
   * @param body its exact text
   */
  read(
    // biome-ignore lint/suspicious/noExplicitAny: a sender's JSON, validated by the schema afterwards
    payload: any,
    headers: DeliveryHeaders,
    body: { readonly text: string },
  ): SenderReading | readonly ListedEvent[] | undefined
  /**
   * What tells events without an id apart. `body`: equal bodies are one event, for as long as keys are remembered.
   * `delivery`: each delivery is an event of its own, so what the service sends again is handled again.
   * @defaultValue 'body', with a warning once events have no time either
   */
  readonly identity?: 'body' | 'delivery'
  /**
   * Answers the handshakes by which some services make sure that the URL is yours: with text, or with an object as JSON. Return
   * `undefined` for everything else. Called for each GET, for each POST before its body is read, and with the payload of each
   * verified POST. A signature vouches for `payload` only, so make an HMAC of nothing else: it would sign what anybody asks for.
   *
   * ```ts
   * challenge: ({ payload }) => (payload?.type === 'url_verification' ? payload.challenge : undefined) // Slack
   * ```
   */
  readonly challenge?: Challenge
}

/** What `read` returns. */
export interface SenderReading {
  readonly type: string
  /** Events of one media item are handled in order. */
  readonly mediaId: string
  /**
   * The sender's event id, the same in every retry. Becomes the event key.
   * @defaultValue an id from the verifier, otherwise a hash of the body
   */
  readonly id?: string | null | undefined
  /** A `Date`, RFC 3339, or a Unix time in s or ms. */
  readonly emittedAt?: Date | string | number | null | undefined
  /**
   * The JSON that the schema validates.
   * @defaultValue the payload
   */
  readonly data?: unknown
}

/** One of several events that `read` returns. */
export interface ListedEvent extends SenderReading {
  /** An object: the JSON that the schema validates, and the payload of this event. */
  readonly data: object
}

/** Most events in a delivery. */
const maxEvents = 1_000

/** Without `data`, the payload itself is the data. */
interface DefinedReading extends Reading {
  readonly mediaId: string
  readonly emittedAt: Date | undefined
  readonly issues: readonly string[]
  readonly data?: unknown
}

/** The stored form: `data` as sent, validated again before a handler gets it. */
type StoredEvent = MediaEvent & { readonly data?: unknown }

/**
 * Defines your own sender, for `createReceiver({ sender })`.
 *
 * ```ts
 * const mux = defineSender({
 *   name: 'mux',
 *   events: { 'video.asset.ready': z.object({ duration: z.number().optional() }) },
 *   read: ({ type, id, created_at, data }) => ({ type, mediaId: data.id, id, emittedAt: created_at, data }),
 * })
 * ```
 * @throws WebhookError `invalid_option`
 */
export function defineSender<Data extends object>(definition: SenderDefinition<Data>): Sender<Data> {
  checkOptions('defineSender', definition ?? null, rules)
  const { name, events, identity, challenge } = definition
  const schemas = new Map<string, StandardSchema>(Object.entries(events))
  if (schemas.size === 0) throw invalid('events: give at least one event type')
  if (name === 'media-service') throw invalid('name: media-service is the name of the default sender')
  for (const [type, schema] of schemas) checkSchema(type, schema)
  const headers = new Set<string>()

  const checked = (found: SenderReading, payload: JsonObject): DefinedReading => {
    const reading = toReading(found, payload)
    validate(schemas.get(reading.type), 'data' in reading ? reading.data : payload)
    return reading
  }
  const listed = (found: ListedEvent, place: number): ListedReading => {
    try {
      if (!isObject(found)) throw new WebhookError('malformed', 'expected an object')
      const payload = asJson(found.data)
      if (!isObject(payload)) throw new WebhookError('malformed', 'field data: expected an object')
      return { reading: checked({ ...found, data: payload }, payload), payload: deepFreeze(payload) }
    } catch (error) {
      if (!(error instanceof WebhookError)) throw error
      throw new WebhookError('malformed', `event ${place} of the list: ${error.message}`, { cause: error.cause })
    }
  }

  const sender: AnySender = {
    name,
    types: [...schemas.keys()],
    headers,
    body: formatOf(definition, (read, text, from) =>
      asJson(callOwn(name, 'body', () => read(text, recordHeaders(headers, from)))),
    ),
    ...(challenge && { handshakes: (options) => new Handshakes(challenge, options) }),
    read(sent, from, text) {
      // Frozen: it is checked in place of the payload that is stored.
      const payload = deepFreeze(withoutPrototypes(sent) as JsonObject)
      const given = recordHeaders(headers, from)
      const found = callOwn(name, 'read', () => definition.read(payload, given, { text }))
      if (found === undefined || !Array.isArray(found)) return found && checked(found as SenderReading, payload)
      if (found.length > maxEvents) throw new WebhookError('malformed', `the list has more than ${maxEvents} events`)
      return found.map(listed)
    },
    readLookup(found) {
      const { type, mediaId, id, emittedAt, data, ...unknown } = found as Partial<SenderLookup>
      const [unknownField] = Object.keys(unknown)
      if (unknownField !== undefined) throw wrongLookup(`there is no field ${unknownField}`)
      if (!schemas.has(type as string))
        throw wrongLookup(`field type: expected one of ${[...schemas.keys()].join(', ')}`)
      const reading = checked({ type, mediaId, id, emittedAt, data: data ?? null } as SenderReading, {})
      if (reading.issues.length > 0)
        throw wrongLookup('field emittedAt: expected a valid Date, RFC 3339 or a Unix time')
      const payload = { ...reading, issues: undefined, emittedAt: reading.emittedAt?.toISOString() }
      // Its JSON makes the key, so equal look-ups need equal JSON.
      return { reading, payload: inOrder(JSON.parse(JSON.stringify(payload))) as JsonObject }
    },
    acceptList,
    alikeWarning: ({ emittedAt }: DefinedReading) =>
      identity !== undefined || emittedAt !== undefined
        ? undefined
        : `events of ${name} have neither an id nor a time, so those with equal bodies count as one: choose identity in defineSender`,
    makeKey({ type, mediaId }: DefinedReading, body) {
      if (identity === 'delivery') return bounded(JSON.stringify([type, mediaId, globalThis.crypto.randomUUID()]))
      // Not the body alone: type and media id may come from headers, so equal bodies can be different events.
      return whenever(keyOfBody(body), (key) => bounded(JSON.stringify([type, mediaId, key])))
    },
    toEvent({ type, mediaId, emittedAt, issues, ...rest }: DefinedReading, key, { source, principal }, payload) {
      return Object.freeze({
        type: type as UnknownEventType,
        key,
        format: 'flat' as const,
        source,
        emittedAt,
        mediaId,
        qualities: noNames,
        principal,
        test: false,
        issues,
        payload,
        ...('data' in rest && { data: deepFreeze(rest.data) }),
      })
    },
    typed(event: StoredEvent) {
      const { type, data = withoutPrototypes(event.payload) } = event
      return Object.freeze({ ...event, data: validate(schemas.get(type), data) })
    },
    varying: [],
    keyed: [],
    comparable(event: StoredEvent) {
      const { type, mediaId, data = event.payload } = event
      const fields: JsonObject = isObject(data) ? data : { data }
      // `read` may have taken them from elsewhere, and the data may have fields of the same names.
      return { ...fields, type: [type, fields['type']], mediaId: [mediaId, fields['mediaId']] }
    },
  }
  return { ...sender, events } as Sender<Data>
}

const rules: Rules<SenderDefinition<object>> = {
  name: required(text),
  events: required(aPlainObject),
  read: required(aFunction),
  ...bodyRules,
  identity: oneOf('body', 'delivery'),
  challenge: aFunction,
}

const noNames: readonly string[] = Object.freeze([])
const timeIssue: readonly string[] = Object.freeze(['emittedAt'])

/** Calls a function of the user. What it threw may quote the payload, so it becomes the `cause`, not part of the message. */
function callOwn<Found extends object>(name: string, own: 'read' | 'body', read: () => Found | undefined) {
  let cause: unknown = `${own} of sender ${name} must return an object`
  try {
    const found = read()
    if (isPromise(found)) {
      // An unhandled rejection would end the process.
      found.then(undefined, () => {})
      cause = `${own} of sender ${name} returned a promise: it cannot be async`
    } else if (isObject(found) || (found === undefined && own === 'read')) return found
  } catch (error) {
    if (error instanceof WebhookError && error.code === 'malformed') throw error
    cause = error
  }
  throw new WebhookError('malformed', `sender ${name} cannot read the ${own === 'read' ? 'payload' : 'body'}`, {
    cause,
  })
}

/** Validates a reading. Copies `data` as JSON, its stored form. */
function toReading({ type, mediaId, id, emittedAt, data }: SenderReading, payload: JsonObject): DefinedReading {
  const time = isDate(emittedAt) ? validDate(emittedAt) : readTime(emittedAt ?? undefined)
  const reading = {
    type: requireText('type', type),
    mediaId: requireText('mediaId', mediaId),
    id: isAbsent(id) ? undefined : requireText('id', id),
    emittedAt: time,
    issues: time !== undefined || isAbsent(emittedAt) ? noNames : timeIssue,
  }
  return data === undefined || data === payload ? reading : { ...reading, data: asJson(data) }
}

const isAbsent = (value: unknown): boolean => value === undefined || value === null || value === ''

/** Ids may be numbers. An unsafe integer has lost digits and could name another id. */
function requireText(field: string, value: unknown): string {
  const found = Number.isSafeInteger(value) ? String(value) : value
  if (typeof found === 'string' && found !== '') return found
  const expected = Number.isInteger(value)
    ? 'the number was rounded by a body parser before the receiver, or by read: expected its digits as a string'
    : 'expected a non-empty string'
  throw new WebhookError('malformed', `field ${field}: ${expected}`)
}

const validDate = (date: Date): Date | undefined => (Number.isNaN(date.getTime()) ? undefined : new Date(date))

function asJson(data: unknown): unknown {
  try {
    return JSON.parse(JSON.stringify(data))
  } catch (cause) {
    throw new WebhookError('malformed', 'field data: expected JSON', { cause })
  }
}

const invalid = (problem: string): WebhookError => new WebhookError('invalid_option', `defineSender: ${problem}`)
