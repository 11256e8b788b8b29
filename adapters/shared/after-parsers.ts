import type { Delivery } from '../../src/index.ts'

/** The members that body parsers leave on a request: Node's, or that of a framework. */
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
  return { ...delivery, body: keptBytes(request) ?? { parsed: request.body, fix } }
}

/** Returns the bytes that a parser has kept, as they were or as text. */
export const keptBytes = ({ rawBody, body }: ParsedRequest): Uint8Array | undefined => toBytes(rawBody) ?? toBytes(body)

function toBytes(body: unknown): Uint8Array | undefined {
  if (body instanceof Uint8Array) return body
  return typeof body === 'string' ? Buffer.from(body) : undefined
}
