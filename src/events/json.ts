import { WebhookError } from '../errors.ts'

/** A JSON object. A key `__proto__` is an ordinary own property, as in JSON.parse. */
export type JsonObject = Readonly<Record<string, unknown>>

/** Maximum nesting of a payload. The service's are flat; the limit protects recursive functions from deep ones. */
const maxDepth = 64

// Fatal: bytes that are not UTF-8 are an error, and do not become U+FFFD. A leading byte order mark is skipped.
const utf8 = new TextDecoder('utf-8', { fatal: true })

/**
 * Parses bytes as a JSON object.
 * @throws WebhookError `malformed`, without quoting the bytes
 */
export function parseJsonObject(bytes: Uint8Array): JsonObject {
  let text: string
  try {
    text = utf8.decode(bytes)
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
  if (isDeeperThan(value, maxDepth)) {
    throw new WebhookError('malformed', `the body is nested more than ${maxDepth} levels deep`)
  }
  return value
}

/** Returns true if a value is an object or a list. */
export const isObject = (value: unknown): value is JsonObject => typeof value === 'object' && value !== null

// Level by level: a recursive function would overflow the stack.
function isDeeperThan(root: JsonObject, limit: number): boolean {
  let level: JsonObject[] = [root]
  for (let depth = 1; level.length > 0; depth++) {
    if (depth > limit) return true
    const next: JsonObject[] = []
    for (const object of level) {
      for (const key in object) {
        const value = object[key]
        if (isObject(value)) next.push(value)
      }
    }
    level = next
  }
  return false
}
