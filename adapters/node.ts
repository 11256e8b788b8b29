import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Http2ServerRequest, Http2ServerResponse } from 'node:http2'
import { type BodyReader, type Delivery, type DeliveryHeaders, type Receiver, WebhookError } from '../src/index.ts'
import { acknowledge } from './shared/acknowledge.ts'
import { consumed, keptBytes, type ParsedRequest } from './shared/after-parsers.ts'
import { Bytes } from './shared/bytes.ts'
import { checkReceiver } from './shared/check-receiver.ts'
import { fixInNode } from './shared/consumed-body.ts'
import { rememberSession } from './shared/http2-sessions.ts'

export { type CloseServerOptions, closeServer } from './node/close-server.ts'

/**
 * Mounts a receiver in a `node:http` or `node:http2` server, or in a framework that passes on their requests and
 * responses.
 *
 * ```ts
 * createServer(nodeHandler(receiver)).listen(3000)
 * ```
 * @returns a function that resolves once the delivery is acknowledged. It rejects only for a response that is not Node's
 * @throws WebhookError `invalid_option` when it is given no receiver
 */
export function nodeHandler(receiver: Pick<Receiver, 'receive'>) {
  checkReceiver('nodeHandler', receiver)
  return async (
    request: IncomingMessage | Http2ServerRequest,
    response: ServerResponse | Http2ServerResponse,
  ): Promise<void> => {
    // HTTP/2's requests and responses have the same members, as far as they are used here.
    const [http1Request, http1Response] = [request as IncomingMessage, response as ServerResponse]
    // For a body that came with the head: it is read without waiting, at 7 % less CPU. A flowing stream would give it
    // to other readers in the meantime.
    if (request.readableFlowing !== true) await undefined
    if (typeof response?.writeHead !== 'function') throw foreignRequest
    acknowledge(await receiver.receive(deliveryOf(http1Request, 'if-heard')), http1Request, http1Response)
  }
}

const foreignRequest = new WebhookError(
  'invalid_option',
  "nodeHandler: give it Node's own request and response: request.raw and reply.raw in Fastify, ctx.req and ctx.res in Koa",
)

/** The requests that have to end after their body was taken from the buffer: all, or only those with a listener. */
type RequestEnd = 'always' | 'if-heard'

/** A request with the properties that body parsers and routers of node:http frameworks add to it. */
type RoutedRequest = IncomingMessage & ParsedRequest & { readonly originalUrl?: string }

/**
 * Makes the delivery of a `node:http` request, even of one that a framework has read or rewritten. Use it to mount a
 * receiver yourself.
 *
 * ```ts
 * const { status, headers, body } = await receiver.receive(toDelivery(request))
 * ```
 */
export function toDelivery(request: IncomingMessage): Delivery {
  // A framework may wait for the end of the request later, as @hono/node-server does.
  return deliveryOf(request, 'always')
}

function deliveryOf(request: RoutedRequest, end: RequestEnd): Delivery {
  const { method = '', originalUrl, url = '' } = request
  const headers = new RawHeaders(request)
  return { method, url: originalUrl ?? url, headers, body: bodyOf(request, headers, end) }
}

/** The fields of a request that Node did not parse: those of serverless-http and of mocks have `headers` only. */
function givenFields(headers: IncomingMessage['headers'] | Headers = {}): string[] {
  const entries = typeof headers.entries === 'function' ? [...headers.entries()] : Object.entries(headers)
  return entries.flatMap(([name, value]) => (value === undefined ? [] : [name, String(value)]))
}

/** The header fields as received: `request.headers` would drop the second of two Authorization fields. */
class RawHeaders implements DeliveryHeaders {
  readonly #fields: readonly string[]

  constructor({ rawHeaders, headers }: IncomingMessage) {
    this.#fields = rawHeaders?.length > 0 ? rawHeaders : givenFields(headers)
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

function bodyOf(request: RoutedRequest, headers: DeliveryHeaders, end: RequestEnd): Delivery['body'] {
  if (isBuffered(request, headers)) return (limit) => readBuffered(request, limit, end)
  if (request.httpVersionMajor === 2) rememberSession(request)
  // Some parsers set an empty `body` on requests that they leave alone, so only the stream tells whether it was read.
  // HTTP/2 also ends the stream of a request that was reset.
  const wasRead = request.readableDidRead || (request.readableEnded && !request.aborted)
  // The requests of test libraries need not be streams.
  const isUnread = !wasRead && request.readableFlowing !== undefined
  // Within the reader: a getter of `body` may parse, and must not run before verification.
  if (isUnread) return (limit) => keptBytes(request, headers) ?? readStream(request, limit)
  return keptBytes(request, headers) ?? consumed(request, fixInNode(request))
}

type ReadBody = Awaited<ReturnType<BodyReader>>

/**
 * Returns true if Node has the whole body, and no reader has taken any of it. A body that came together with its head
 * is there one microtask after the request. It reads as few properties as possible: with Express on Node 20, each one
 * takes V8 up to half a microsecond.
 */
function isBuffered(request: IncomingMessage, headers: DeliveryHeaders): boolean {
  const { readableLength: length } = request
  if (length === 0 || length !== Number(headers.get('content-length'))) return false
  // A stream that flows gives its chunks to another reader. One with an encoding counts characters. HTTP/2 may send
  // another length than it declares.
  return request.readableFlowing !== true && request.readableEncoding === null && request.httpVersionMajor === 1
}

/** Reads a body that is buffered, without a listener and a promise. */
function readBuffered(request: IncomingMessage, limit: number, end: RequestEnd): ReturnType<BodyReader> {
  const bytes: Buffer | null = request.read()
  // Another reader has read it since.
  if (bytes === null) return 'incomplete'
  // A request ends only while something reads it. Its `end` and `close` are a seventh of the CPU of a delivery, and few
  // listeners wait for them.
  if (end === 'always' || request.listenerCount('end') + request.listenerCount('close') > 0) request.resume()
  return bytes.byteLength > limit ? 'too_large' : bytes
}

/** Reads the body as it arrives. */
function readStream(request: IncomingMessage, limit: number): Promise<ReadBody> {
  return new Promise((resolve) => {
    // It has no event left. HTTP/2 ends the stream of a request that was reset, and does not destroy it.
    if (request.destroyed || request.readableEnded) return resolve('incomplete')
    const bytes = new Bytes()
    const onData = (chunk: Buffer | string) => {
      // After a middleware called setEncoding, every reader gets strings.
      const piece = typeof chunk === 'string' ? Buffer.from(chunk, request.readableEncoding ?? 'utf8') : chunk
      if (bytes.size + piece.byteLength > limit) finish('too_large')
      else bytes.add(piece)
    }
    const onEnd = () => {
      const length = request.headers['content-length']
      const ended = () => finish(request.aborted || bytes.size < Number(length ?? 0) ? 'incomplete' : bytes.all())
      // HTTP/2 also ends the stream of a request that was reset. Without a length, only the reset itself tells, which
      // comes after the end.
      if (length === undefined && request.httpVersionMajor === 2) setImmediate(ended)
      else ended()
    }
    // When the sender disconnects, the stream closes without an end.
    const onClose = () => finish('incomplete')
    const finish = (result: ReadBody) => {
      request.off('data', onData).off('end', onEnd).off('close', onClose).off('error', onClose).pause()
      resolve(result)
    }
    // The stream is resumed, since one that a middleware has paused would stay paused.
    request.on('data', onData).on('end', onEnd).on('close', onClose).on('error', onClose).resume()
  })
}
