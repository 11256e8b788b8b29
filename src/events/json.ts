import { WebhookError } from '../errors.ts'
import { fatalDecoder } from '../internal/utf8.ts'
import type { MediaEvent } from './media-service/catalogue.ts'

/** A JSON object. `__proto__` is an ordinary own key, as in `JSON.parse`. */
export type JsonObject = Readonly<Record<string, unknown>>

// `application/json` and `application/…+json`, with or without parameters.
const jsonType = /^application\/(?:json|[\w!#$&^.-]+\+json)[ \t]*(?:;|$)/i

/** The content types of JSON. */
export const jsonTypes = {
  takes: (contentType: string): boolean => jsonType.test(contentType),
  contentTypes: 'application/json',
}

/** Maximum payload depth. Real payloads are flat; recursive functions rely on the limit. */
const maxDepth = 64

/** Maximum values in a payload, by default. The media service's have about 10. `{},` takes far more memory parsed than sent. */
export const defaultMaxValues = 4_096

/** @throws WebhookError `malformed` */
export function decodeText(bytes: Uint8Array): string {
  try {
    return fatalDecoder.decode(bytes)
  } catch {
    throw new WebhookError('malformed', 'the body is not UTF-8')
  }
}

/** @throws WebhookError `malformed`, without quoting the body */
export function parseJson(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    throw new WebhookError('malformed', 'the body is not JSON')
  }
}

/** @throws WebhookError `malformed`, without quoting the body */
export function parseJsonObject(text: string): JsonObject {
  const value = parseJson(text)
  if (!isObject(value) || Array.isArray(value)) throw new WebhookError('malformed', 'the body is not a JSON object')
  return value
}

/**
 * Freezes a payload at every depth: handlers share one event.
 * @throws WebhookError `malformed` if it is too much
 */
export function frozenPayload<Payload extends JsonObject>(payload: Payload, maxValues: number): Payload {
  const excess = freeze(payload, maxValues)
  if (excess !== undefined) throw new WebhookError('malformed', `the body ${excess}`)
  return payload
}

export const isObject = (value: unknown): value is JsonObject => typeof value === 'object' && value !== null

/** Freezes an object and all that it holds. Returns what is too much of it. */
// Breadth-first: recursion would overflow the stack.
function freeze(root: JsonObject, maxValues: number): string | undefined {
  let level: JsonObject[] | undefined = [root]
  let values = 0
  for (let depth = 1; level !== undefined; depth++) {
    if (depth > maxDepth) return `is nested more than ${maxDepth} levels deep`
    let next: JsonObject[] | undefined
    for (const object of level) {
      for (const key in object) {
        if (++values > maxValues) return `has more than ${maxValues} values`
        const value = object[key]
        if (!isObject(value)) continue
        if (next === undefined) next = [value]
        else next.push(value)
      }
      Object.freeze(object)
    }
    level = next
  }
  return undefined
}

/** Freezes a JSON value and all that it holds. Recursion is safe: the depth is limited. */
export function deepFreeze<Value>(value: Value): Value {
  if (isObject(value)) for (const key in Object.freeze(value)) if (isObject(value[key])) deepFreeze(value[key])
  return value
}

/** Sorts the names at every depth, so that equal values have equal JSON. */
export function inOrder(value: unknown): unknown {
  if (!isObject(value)) return value
  if (Array.isArray(value)) return value.map(inOrder)
  const entries = Object.entries(value).map(([name, each]) => [name, inOrder(each)] as const)
  return Object.fromEntries(entries.sort(([a], [b]) => (a < b ? -1 : 1)))
}

/**
 * Deep-copies a JSON value without prototypes, `__proto__` and `constructor.prototype`: merging the copy into another
 * object can't pollute `Object.prototype`.
 */
export function withoutPrototypes(value: unknown): unknown {
  if (!isObject(value)) return value
  if (Array.isArray(value)) return value.map(withoutPrototypes)
  const copy = Object.create(null)
  for (const [key, each] of Object.entries(value)) {
    const reachesPrototype =
      key === '__proto__' || (key === 'constructor' && isObject(each) && Object.hasOwn(each, 'prototype'))
    if (!reachesPrototype) copy[key] = withoutPrototypes(each)
  }
  return copy
}

/** Estimates the memory of an event (bytes), rather too high. */
export const sizeOf = ({ payload, qualities, data }: MediaEvent & { readonly data?: unknown }): number =>
  64 * qualities.length + sizeOfObject(payload) + (isObject(data) ? sizeOfObject(data) : 0)

// Recursion is safe: the depth is limited.
function sizeOfObject(object: JsonObject): number {
  let size = 64
  for (const key in object) {
    const value = object[key]
    size += 64 + 2 * key.length
    if (typeof value === 'string') size += 2 * value.length
    else if (isObject(value)) size += sizeOfObject(value)
  }
  return size
}

// The offset is required. Without one, `Date` assumes this machine's time zone.
const rfc3339 = /^\d{4}-\d\d-\d\dT[\d:.]+(?:Z|[+-]\d\d:\d\d)$/

// Only RFC 3339, which every engine parses alike. An unparsable time must not lose the event: it stays in the payload.
export function readTime(sent: string | number | undefined): Date | undefined {
  if (typeof sent === 'number') return readEpoch(sent)
  if (sent === undefined || !rfc3339.test(sent)) return undefined
  const date = new Date(sent)
  return Number.isNaN(date.getTime()) ? undefined : date
}

// Between September 2001 and the year 5138, epoch seconds and ms can't be confused. Anything else is probably no time.
function readEpoch(number: number): Date | undefined {
  if (number >= 1e9 && number < 1e11) return new Date(number * 1_000)
  return number >= 1e12 && number < 1e14 ? new Date(number) : undefined
}

/** Works across realms, unlike `instanceof`. */
export const isDate = (value: unknown): value is Date => typeof (value as Date)?.getTime === 'function'
