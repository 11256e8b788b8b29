import type { Delivery, DeliveryHeaders } from '../../src/index.ts'

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
  if (typeof delivery.body === 'function' || delivery.body instanceof Uint8Array) return delivery
  return { ...delivery, body: keptBytes(request, delivery.headers) ?? { parsed: request.body, fix } }
}

/** Returns the bytes that a parser has kept, as they were or as text. */
export const keptBytes = ({ rawBody, body }: ParsedRequest, headers: DeliveryHeaders): Uint8Array | undefined =>
  toBytes(rawBody, headers) ?? toBytes(body, headers)

function toBytes(body: unknown, headers: DeliveryHeaders): Uint8Array | undefined {
  if (body instanceof Uint8Array) return body
  return typeof body === 'string' ? withMark(Buffer.from(body), headers) : undefined
}

const mark = [0xef, 0xbb, 0xbf]

/**
 * Puts back the byte order mark that is lost when bytes become text, and that a signature covers. The declared length shows
 * that it is missing.
 */
export function withMark(bytes: Uint8Array, headers: DeliveryHeaders): Uint8Array {
  const missing = Number(headers.get('content-length')) - bytes.byteLength
  if (missing !== mark.length || headers.get('content-encoding') !== null) return bytes
  const marked = new Uint8Array(bytes.byteLength + mark.length)
  marked.set(mark)
  marked.set(bytes, mark.length)
  return marked
}
