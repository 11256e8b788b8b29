import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Http2ServerRequest, Http2ServerResponse } from 'node:http2'
import { type BodyReader, type Delivery, type DeliveryHeaders, type Receiver, WebhookError } from '../src/index.ts'
import { acknowledge } from './shared/acknowledge.ts'
import { consumed, keptBytes, type ParsedRequest } from './shared/after-parsers.ts'
import { Bytes } from './shared/bytes.ts'
import { checkReceiver } from './shared/check-receiver.ts'
import { fixInNode } from './shared/consumed-body.ts'
import { rememberSession } from './shared/http2-sessions.ts'

export { type CloseOnSignalsOptions, closeOnSignals } from './node/close-on-signals.ts'
export {
  type ClosableReceiver,
  type ClosableServer,
  type CloseServerOptions,
  closeServer,
} from './node/close-server.ts'

/**
 * Mounts a receiver in a `node:http` or `node:http2` server, or in any framework built on one.
 *
 * ```ts
 * createServer(nodeHandler(receiver)).listen(3000)
 * ```
 * @returns a function that resolves once the delivery is acknowledged; rejects only if the response is not Node's own
 * @throws WebhookError `invalid_option` without a receiver
 */
export function nodeHandler(receiver: Pick<Receiver, 'receive'>) {
  checkReceiver('nodeHandler', receiver)
  return async (
    request: IncomingMessage | Http2ServerRequest,
    response: ServerResponse | Http2ServerResponse,
  ): Promise<void> => {
    // HTTP/2 has every member used here.
    const [http1Request, http1Response] = [request as IncomingMessage, response as ServerResponse]
    // One microtask, and a body that came with the head is buffered. A flowing stream would hand it to other readers.
    if (request.readableFlowing !== true) await undefined
    if (typeof response?.writeHead !== 'function') throw foreignRequest
    acknowledge(await receiver.receive(makeDelivery(http1Request, 'if-heard')), http1Request, http1Response)
  }
}

const foreignRequest = new WebhookError(
  'invalid_option',
  "nodeHandler: pass Node's own request and response: request.raw and reply.raw in Fastify, ctx.req and ctx.res in Koa",
)

/** When to drive a request to its `end` after a buffered read: always, or only if somebody listens. */
type RequestEnd = 'always' | 'if-heard'

type RoutedRequest = IncomingMessage & ParsedRequest & { readonly originalUrl?: string }

/**
 * Turns a `node:http` request into a delivery, to mount a receiver yourself. A framework may have read or rewritten it.
 *
 * ```ts
 * const { status, headers, body } = await receiver.receive(toDelivery(request))
 * ```
 */
export function toDelivery(request: IncomingMessage): Delivery {
  // @hono/node-server, for one, starts listening for the end later.
  return makeDelivery(request, 'always')
}

function makeDelivery(request: RoutedRequest, end: RequestEnd): Delivery {
  const { method = '', originalUrl, url = '' } = request
  const headers = new RawHeaders(request)
  return { method, url: originalUrl ?? url, headers, body: makeBodyReader(request, headers, end) }
}

/** For requests without `rawHeaders`: serverless-http, mocks. */
function givenFields(headers: IncomingMessage['headers'] | Headers = {}): string[] {
  const entries = typeof headers.entries === 'function' ? [...headers.entries()] : Object.entries(headers)
  return entries.flatMap(([name, value]) => (value === undefined ? [] : [name, String(value)]))
}

/** Headers as received: `request.headers` drops a second Authorization. */
class RawHeaders implements DeliveryHeaders {
  readonly #request: IncomingMessage
  readonly #fields: readonly string[]

  constructor(request: IncomingMessage) {
    const { rawHeaders } = request
    this.#request = request
    this.#fields = rawHeaders?.length > 0 ? rawHeaders : givenFields(request.headers)
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
    return mayBeSet(wanted, found) ? (this.#set(wanted, found) ?? found) : found
  }

  /** The value that a middleware has set. Of fields sent twice, `headers` has the first. */
  #set(name: string, found: string | null): string | undefined {
    const value = this.#request.headers?.[name]
    return value === undefined || found?.startsWith(`${value}, `) ? undefined : String(value)
  }
}

/** Node builds `headers` at the first read, which takes time: worth it only for a field that a middleware sets right. */
const mayBeSet = (name: string, found: string | null): boolean =>
  found === null ? name !== 'content-encoding' : name === 'content-type' && !found.startsWith('application/json')

function makeBodyReader(request: RoutedRequest, headers: DeliveryHeaders, end: RequestEnd): Delivery['body'] {
  if (isBuffered(request, headers)) return (limit) => readBuffered(request, limit, end)
  if (request.httpVersionMajor === 2) rememberSession(request)
  // Some parsers set an empty `body` on requests they leave alone. HTTP/2 also ends the stream of a reset request.
  const wasRead = request.readableDidRead || (request.readableEnded && !request.aborted)
  // Test libraries pass requests that are no streams.
  const isUnread = !wasRead && request.readableFlowing !== undefined
  // Inside the reader, because a `body` getter may parse, and must not run before verification.
  if (isUnread) return (limit) => keptBytes(request, headers) ?? readStream(request, limit)
  return keptBytes(request, headers) ?? consumed(request, fixInNode(request))
}

type ReadBody = Awaited<ReturnType<BodyReader>>

/** True if the whole body is buffered and untouched. Reads few properties: Express makes each one slow on Node 20. */
function isBuffered(request: IncomingMessage, headers: DeliveryHeaders): boolean {
  const { readableLength: length } = request
  if (length === 0 || length !== Number(headers.get('content-length'))) return false
  // A flowing stream has another reader, an encoded one counts characters, and HTTP/2 does not enforce content-length.
  return request.readableFlowing !== true && request.readableEncoding === null && request.httpVersionMajor === 1
}

function readBuffered(request: IncomingMessage, limit: number, end: RequestEnd): ReturnType<BodyReader> {
  const bytes: Buffer | null = request.read()
  // Another reader was faster.
  if (bytes === null) return 'incomplete'
  // `end` and `close` cost a seventh of a delivery's CPU. Skip them unless somebody listens.
  if (end === 'always' || request.listenerCount('end') + request.listenerCount('close') > 0) request.resume()
  return bytes.byteLength > limit ? 'too_large' : bytes
}

/** Over HTTP/2, Node's own client ends a stream that it gives up, and resets it a moment later (ms). */
const resetMs = 25

function readStream(request: IncomingMessage, limit: number): Promise<ReadBody> {
  return new Promise((resolve) => {
    // No event will come. HTTP/2 ends the stream of a reset request without destroying it.
    if (request.destroyed || request.readableEnded) return resolve('incomplete')
    const bytes = new Bytes()
    let timer: NodeJS.Timeout | undefined
    const onData = (chunk: Buffer | string) => {
      // Strings, if a middleware called setEncoding.
      const piece = typeof chunk === 'string' ? Buffer.from(chunk, request.readableEncoding ?? 'utf8') : chunk
      if (bytes.size + piece.byteLength > limit) finish('too_large')
      else bytes.add(piece)
    }
    const onEnd = () => {
      const length = request.headers['content-length']
      const ended = () => finish(request.aborted || bytes.size < Number(length ?? 0) ? 'incomplete' : bytes.all())
      if (length === undefined && request.httpVersionMajor === 2) timer = setTimeout(ended, resetMs)
      else ended()
    }
    // The sender disconnected: `close` without `end`.
    const onClose = () => finish('incomplete')
    const finish = (result: ReadBody) => {
      clearTimeout(timer)
      request.off('data', onData).off('end', onEnd).off('close', onClose).off('error', onClose).pause()
      resolve(result)
    }
    // A middleware may have paused the stream.
    request.on('data', onData).on('end', onEnd).on('close', onClose).on('error', onClose).resume()
  })
}
