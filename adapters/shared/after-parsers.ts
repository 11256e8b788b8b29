import type { Delivery, DeliveryHeaders, ParsedBody } from '../../src/index.ts'

export interface ParsedRequest {
  readonly rawBody?: unknown
  readonly body?: unknown
}

/** Fills in a consumed body: the bytes if a parser kept them, else the parsed body, with the `fix` for the log. */
export function afterParsers(delivery: Delivery, request: ParsedRequest, fix: string): Delivery {
  if (typeof delivery.body === 'function' || ArrayBuffer.isView(delivery.body)) return delivery
  return { ...delivery, body: keptBytes(request, delivery.headers) ?? consumed(request, fix) }
}

/** The bytes a parser kept, raw or as text. */
export const keptBytes = (request: ParsedRequest, headers: DeliveryHeaders): Uint8Array | undefined =>
  toBytes(readMember(request, 'rawBody'), headers) ?? toBytes(readMember(request, 'body'), headers)

/** The body when its bytes are gone. */
export const consumed = (request: ParsedRequest, fix: string): ParsedBody => ({
  parsed: readMember(request, 'body'),
  fix,
})

/** Some platforms parse in a getter, which throws on invalid JSON. */
function readMember(request: ParsedRequest, member: keyof ParsedRequest): unknown {
  try {
    return request[member]
  } catch {
    return undefined
  }
}

/** Accepts any realm's `Uint8Array`: Jest's is not Node's. */
const isBytes = (body: unknown): body is Uint8Array => Object.prototype.toString.call(body) === '[object Uint8Array]'

function toBytes(body: unknown, headers: DeliveryHeaders): Uint8Array | undefined {
  if (isBytes(body)) return body
  return typeof body === 'string' ? withByteOrderMark(Buffer.from(body), headers) : undefined
}

const byteOrderMark = [0xef, 0xbb, 0xbf]

/** Restores the byte order mark that decoding dropped, if content-length shows it missing. Signatures cover it. */
export function withByteOrderMark(bytes: Uint8Array, headers: DeliveryHeaders): Uint8Array {
  const missing = Number(headers.get('content-length')) - bytes.byteLength
  if (missing !== byteOrderMark.length || headers.get('content-encoding') !== null) return bytes
  const marked = new Uint8Array(bytes.byteLength + byteOrderMark.length)
  marked.set(byteOrderMark)
  marked.set(bytes, byteOrderMark.length)
  return marked
}
