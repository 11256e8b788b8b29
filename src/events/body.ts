import { WebhookError } from '../errors.ts'
import { gunzip } from '../internal/gunzip.ts'
import type { DeliveryHeaders } from '../receiver/delivery.ts'
import { exactNumbers } from './exact-numbers.ts'
import { isObject, type JsonObject, parseJson } from './json.ts'

/** How a sender writes its bodies. */
export interface BodyFormat {
  /** Tells whether the sender posts this content type. */
  takes(contentType: string): boolean
  /** The content types, for the error message. */
  readonly contentTypes: string
  /**
   * Decompresses a body. Absent if bodies are never compressed.
   * @throws WebhookError `too_large` beyond `limit` bytes, or `malformed`
   */
  readonly decompress?: (bytes: Uint8Array, headers: DeliveryHeaders, limit: number) => Promise<Uint8Array>
  /**
   * Reads the payload: a JSON object, or a list.
   * @throws WebhookError `malformed`, without quoting the body
   */
  parse(text: string, headers: DeliveryHeaders): JsonObject
  /**
   * Writes what another parser made of a body. Returns `undefined`, or throws, for what is not JSON.
   * @throws WebhookError `malformed`
   */
  write(parsed: unknown): string | undefined
}

/** The content types that a sender lists. */
export function listedTypes(types: readonly string[]): Pick<BodyFormat, 'takes' | 'contentTypes'> {
  const known = new Set(types.map((type) => type.toLowerCase()))
  return {
    takes: (contentType) => known.has((contentType.split(';', 1)[0] as string).trim().toLowerCase()),
    contentTypes: types.join(' or '),
  }
}

/** Decompresses what is sent as gzip (RFC 1952), unless a parser has: it may leave the header. */
export async function decompressGzip(bytes: Uint8Array, headers: DeliveryHeaders, limit: number): Promise<Uint8Array> {
  const isGzip = headers.get('content-encoding')?.toLowerCase() === 'gzip' && bytes[0] === 0x1f && bytes[1] === 0x8b
  if (!isGzip) return bytes
  const body = await gunzip(bytes, limit)
  if (body === 'invalid') throw new WebhookError('malformed', 'the body is not valid gzip')
  if (body === 'too_large') throw new WebhookError('too_large', `the body is larger than ${limit} bytes`)
  return body
}

/** Parses JSON: an object, or a list of them. Numbers that JavaScript would round become strings. */
export function parseExactly(text: string): JsonObject {
  const value = parseJson(text)
  if (!isObject(value)) throw new WebhookError('malformed', 'the body is neither a JSON object nor a list')
  const exact = exactNumbers(text)
  return exact === text ? value : (parseJson(exact) as JsonObject)
}

/**
 * Parses `application/x-www-form-urlencoded`. A field that comes twice is malformed: which of the two is signed, or meant?
 * @throws WebhookError `malformed`
 */
export function parseForm(text: string): JsonObject {
  try {
    // `URLSearchParams` replaces what is not UTF-8.
    decodeURIComponent(text)
  } catch {
    throw new WebhookError('malformed', 'the body is not a form in UTF-8')
  }
  const fields = new Map<string, string>()
  for (const [name, value] of new URLSearchParams(text)) {
    if (fields.has(name))
      throw new WebhookError('malformed', `field ${JSON.stringify(name.slice(0, maxName))}: sent more than once`)
    fields.set(name, value)
  }
  return Object.fromEntries(fields)
}

/**
 * Writes what another parser made of a form.
 * @throws WebhookError `malformed` for what it nested or listed: nothing says how that was sent
 */
export function writeForm(parsed: unknown): string {
  const fields = Object.entries(parsed as object)
  for (const [name, value] of fields)
    if (typeof value !== 'string')
      throw new WebhookError('malformed', `field ${JSON.stringify(name.slice(0, maxName))}: expected a text`)
  return String(new URLSearchParams(fields))
}

/** Names can come from anyone, and have any characters. */
const maxName = 100
