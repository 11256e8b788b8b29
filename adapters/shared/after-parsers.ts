import type { Delivery, DeliveryHeaders, ParsedBody } from '../../src/index.ts'

/** The members that body parsers leave on a request: Node's, or that of a framework. */
export interface ParsedRequest {
  readonly rawBody?: unknown
  readonly body?: unknown
}

/**
 * Completes a delivery whose stream another reader has consumed. It uses the bytes if the parsers of a framework have
 * kept them, otherwise the parsed body.
 * @param fix how to leave the body unread in that framework, for the log
 */
export function afterParsers(delivery: Delivery, request: ParsedRequest, fix: string): Delivery {
  if (typeof delivery.body === 'function' || ArrayBuffer.isView(delivery.body)) return delivery
  return { ...delivery, body: keptBytes(request, delivery.headers) ?? consumed(request, fix) }
}

/** Returns the bytes that a parser has kept, as they were or as text. */
export const keptBytes = (request: ParsedRequest, headers: DeliveryHeaders): Uint8Array | undefined =>
  toBytes(memberOf(request, 'rawBody'), headers) ?? toBytes(memberOf(request, 'body'), headers)

/** The body of a request whose bytes are gone. */
export const consumed = (request: ParsedRequest, fix: string): ParsedBody => ({
  parsed: memberOf(request, 'body'),
  fix,
})

/** Reads a member. Some platforms parse in a getter, which throws if the body is no JSON. */
function memberOf(request: ParsedRequest, member: keyof ParsedRequest): unknown {
  try {
    return request[member]
  } catch {
    return undefined
  }
}

/** Returns true for the bytes of any realm: under Jest, those of the tests are not the `Uint8Array` of Node. */
const isBytes = (body: unknown): body is Uint8Array => Object.prototype.toString.call(body) === '[object Uint8Array]'

function toBytes(body: unknown, headers: DeliveryHeaders): Uint8Array | undefined {
  if (isBytes(body)) return body
  return typeof body === 'string' ? withByteOrderMark(Buffer.from(body), headers) : undefined
}

const byteOrderMark = [0xef, 0xbb, 0xbf]

/**
 * Puts back the byte order mark that is lost when bytes become text, and that a signature covers. The declared length shows
 * that it is missing.
 */
export function withByteOrderMark(bytes: Uint8Array, headers: DeliveryHeaders): Uint8Array {
  const missing = Number(headers.get('content-length')) - bytes.byteLength
  if (missing !== byteOrderMark.length || headers.get('content-encoding') !== null) return bytes
  const marked = new Uint8Array(bytes.byteLength + byteOrderMark.length)
  marked.set(byteOrderMark)
  marked.set(bytes, byteOrderMark.length)
  return marked
}
