import type { Delivery } from '../src/index.ts'

/** What body parsers leave on the request object of a framework, which is not Node's. */
export interface ParsedRequest {
  readonly rawBody?: unknown
  readonly body?: unknown
}

/**
 * Completes a delivery whose stream another reader has consumed, with what the parsers of a framework have left: the bytes
 * if they kept them, otherwise the parsed body.
 * @param fix how to leave the body unread in that framework, for the log
 */
export function afterParsers(delivery: Delivery, request: ParsedRequest, fix: string): Delivery {
  if (typeof delivery.body === 'function' || delivery.body instanceof Uint8Array) return delivery
  const { rawBody, body } = request
  return { ...delivery, body: toBytes(rawBody) ?? toBytes(body) ?? { parsed: body, fix } }
}

/** The bytes that a parser has kept: as they are, or decoded to text. */
export function toBytes(body: unknown): Uint8Array | undefined {
  if (body instanceof Uint8Array) return body
  return typeof body === 'string' ? Buffer.from(body) : undefined
}
