import type { IncomingMessage } from 'node:http'
import type { Delivery, DeliveryHeaders } from '../../src/index.ts'
import { Bytes } from './bytes.ts'

/** What body parsers and routers of node:http frameworks add to a request. */
interface ParsedRequest extends IncomingMessage {
  originalUrl?: string
  rawBody?: unknown
  body?: unknown
}

/** The delivery in a request of node:http, whatever a framework did to it before. */
export function toDelivery(request: ParsedRequest): Delivery {
  return {
    method: request.method ?? '',
    url: request.originalUrl ?? request.url ?? '',
    headers: new RawHeaders(request),
    body: bodyOf(request),
  }
}

/** The header fields as received: `request.headers` would drop the second of two Authorization fields. */
class RawHeaders implements DeliveryHeaders {
  readonly #fields: readonly string[]

  constructor({ rawHeaders }: IncomingMessage) {
    this.#fields = rawHeaders
  }

  get(name: string): string | null {
    const wanted = name.toLowerCase()
    let found: string | null = null
    for (let i = 0; i < this.#fields.length; i += 2) {
      const field = this.#fields[i] as string
      if (field.length !== wanted.length || field.toLowerCase() !== wanted) continue
      const value = this.#fields[i + 1] as string
      found = found === null ? value : `${found}, ${value}`
    }
    return found
  }
}

function bodyOf(request: ParsedRequest): Delivery['body'] {
  const { rawBody, body } = request
  const bytes = toBytes(rawBody) ?? toBytes(body)
  if (bytes !== undefined) return bytes
  // Some parsers set an empty `body` on what they leave alone, so that only the stream tells whether it was read.
  const wasRead = request.readableDidRead || request.readableEnded
  return wasRead ? { parsed: body } : (limit) => readStream(request, limit)
}

function toBytes(body: unknown): Uint8Array | undefined {
  if (body instanceof Uint8Array) return body
  return typeof body === 'string' ? Buffer.from(body) : undefined
}

function readStream(request: IncomingMessage, limit: number): Promise<Uint8Array | 'too_large' | 'incomplete'> {
  return new Promise((resolve) => {
    if (request.destroyed) return resolve('incomplete')
    const bytes = new Bytes()
    const onData = (chunk: Buffer | string) => {
      // A middleware that called setEncoding gets text; so does everybody after it.
      const piece = typeof chunk === 'string' ? Buffer.from(chunk, request.readableEncoding ?? 'utf8') : chunk
      if (bytes.size + piece.byteLength > limit) finish('too_large')
      else bytes.add(piece)
    }
    const onEnd = () => finish(bytes.all())
    // A sender that goes away leaves a stream that closes without an end.
    const onClose = () => finish('incomplete')
    const finish = (result: Uint8Array | 'too_large' | 'incomplete') => {
      request.off('data', onData).off('end', onEnd).off('close', onClose).off('error', onClose).pause()
      resolve(result)
    }
    // Resumed, as one that somebody has paused would stay so.
    request.on('data', onData).on('end', onEnd).on('close', onClose).on('error', onClose).resume()
  })
}
