import { WebhookError } from '../errors.ts'
import { fatalDecoder } from '../internal/utf8.ts'
import type { MediaEvent } from './media-service/catalogue.ts'

/** A JSON object. A key `__proto__` is an ordinary own property, as in JSON.parse. */
export type JsonObject = Readonly<Record<string, unknown>>

/** Maximum nesting of a payload. The service's are flat; the limit protects recursive functions from deep ones. */
const maxDepth = 64

/** Maximum number of values in a payload. The service's have about 10. Each takes far more memory than `{},` does in a body. */
const maxValues = 4_096

/**
 * Parses bytes as a JSON object.
 * @throws WebhookError `malformed`, without quoting the bytes
 */
export function parseJsonObject(bytes: Uint8Array): JsonObject {
  let text: string
  try {
    text = fatalDecoder.decode(bytes)
  } catch {
    throw new WebhookError('malformed', 'the body is not UTF-8')
  }
  let value: unknown
  try {
    value = JSON.parse(text)
  } catch {
    throw new WebhookError('malformed', 'the body is not JSON')
  }
  return checkJsonObject(value)
}

/**
 * Checks that a parsed JSON value is an object.
 * @throws WebhookError `malformed`
 */
export function checkJsonObject(value: unknown): JsonObject {
  if (!isObject(value) || Array.isArray(value)) throw new WebhookError('malformed', 'the body is not a JSON object')
  const excess = excessOf(value)
  if (excess !== undefined) throw new WebhookError('malformed', `the body ${excess}`)
  return value
}

/** Returns true if a value is an object or a list. */
export const isObject = (value: unknown): value is JsonObject => typeof value === 'object' && value !== null

// Level by level: a recursive function would overflow the stack.
function excessOf(root: JsonObject): string | undefined {
  let level: JsonObject[] = [root]
  let values = 0
  for (let depth = 1; level.length > 0; depth++) {
    if (depth > maxDepth) return `is nested more than ${maxDepth} levels deep`
    const next: JsonObject[] = []
    for (const object of level) {
      for (const key in object) {
        if (++values > maxValues) return `has more than ${maxValues} values`
        const value = object[key]
        if (isObject(value)) next.push(value)
      }
    }
    level = next
  }
  return undefined
}

/**
 * Copies a JSON value without prototypes, without `__proto__`, and without a `constructor` that has a `prototype`: code that
 * merges it into other objects cannot change the prototype of all.
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

/** Estimates the memory that an event takes, in bytes. The estimate is rather too high. */
export const sizeOf = ({ payload, qualities, data }: MediaEvent & { readonly data?: unknown }): number =>
  64 * qualities.length + sizeOfObject(payload) + (isObject(data) ? sizeOfObject(data) : 0)

// Recursive, because the depth of a payload is limited.
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

/** Returns true for a `Date` of any realm. */
export const isDate = (value: unknown): value is Date => typeof (value as Date)?.getTime === 'function'
