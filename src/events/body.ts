import { WebhookError } from '../errors.ts'
import type { Rule, Rules } from '../internal/check-options.ts'
import { gunzip } from '../internal/gunzip.ts'
import type { DeliveryHeaders } from '../receiver/delivery.ts'
import { exactNumbers, writeRounded } from './exact-numbers.ts'
import { isObject, type JsonObject, jsonTypes, parseJson } from './json.ts'

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

/** The options of `defineSender` that say how bodies are written. */
export interface BodyOptions {
  /**
   * How bodies are written: as JSON, as a form (`application/x-www-form-urlencoded`), or as what your function makes an object
   * of. A delivery for which it throws is `malformed`.
   * @defaultValue 'json'
   */
  readonly body?: 'json' | 'form' | ((text: string, headers: DeliveryHeaders) => object)
  /**
   * The content types that the service posts, such as `text/plain`. Others are answered 415.
   * @defaultValue those of JSON or of a form; any for a function
   */
  readonly contentTypes?: readonly string[]
  /**
   * Accepts bodies compressed with gzip. Their size, decompressed, is limited by `maxBodyBytes`; signatures are those of the
   * decompressed body.
   * @defaultValue false
   */
  readonly gzip?: boolean
}

const mediaTypes: Rule = [
  "a list of content types, such as ['text/plain']",
  (value: unknown) =>
    Array.isArray(value) && value.length > 0 && value.every((each) => /^[\w.+-]+\/[\w.+-]+$/.test(String(each))),
]

const aFormat: Rule = [
  "'json', 'form' or a function",
  (value) => ['json', 'form'].includes(value) || typeof value === 'function',
]

const canGunzip: Rule = [
  'true or false; true needs a runtime with DecompressionStream',
  (value) => value === false || (value === true && typeof DecompressionStream === 'function'),
]

export const bodyRules: Rules<BodyOptions> = { body: aFormat, contentTypes: mediaTypes, gzip: canGunzip }

/** Calls a sender's own function. Returns JSON. */
type CallOwn = (read: OwnFormat, text: string, headers: DeliveryHeaders) => unknown

type OwnFormat = Extract<BodyOptions['body'], (...given: never) => unknown>

export function formatOf({ body = 'json', contentTypes, gzip = false }: BodyOptions, callOwn: CallOwn): BodyFormat {
  const given = { ...(contentTypes && listedTypes(contentTypes)), ...(gzip && { decompress: decompressGzip }) }
  if (typeof body !== 'function') return { ...formats[body], ...given }
  const parse = (text: string, headers: DeliveryHeaders) => callOwn(body, text, headers) as JsonObject
  return { takes: () => true, contentTypes: 'any', parse, write: writeRounded, ...given }
}

/** The content types that a sender lists. */
function listedTypes(types: readonly string[]): Pick<BodyFormat, 'takes' | 'contentTypes'> {
  const known = new Set(types.map((type) => type.toLowerCase()))
  return {
    takes: (contentType) => known.has((contentType.split(';', 1)[0] as string).trim().toLowerCase()),
    contentTypes: types.join(' or '),
  }
}

/** Decompresses what is sent as gzip (RFC 1952), unless a parser has: it may leave the header. */
async function decompressGzip(bytes: Uint8Array, headers: DeliveryHeaders, limit: number): Promise<Uint8Array> {
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
function writeForm(parsed: unknown): string {
  const fields = Object.entries(parsed as object)
  for (const [name, value] of fields)
    if (typeof value !== 'string')
      throw new WebhookError('malformed', `field ${JSON.stringify(name.slice(0, maxName))}: expected a text`)
  return String(new URLSearchParams(fields))
}

/** Names can come from anyone, and have any characters. */
const maxName = 100

const formats = {
  json: { ...jsonTypes, parse: parseExactly, write: writeRounded },
  form: { ...listedTypes(['application/x-www-form-urlencoded']), parse: parseForm, write: writeForm },
}
