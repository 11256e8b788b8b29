import { finished } from 'node:stream'
import type { FastifyError, FastifyInstance, FastifyPluginAsync, FastifyReply, FastifyRequest } from 'fastify'
import type { Receiver } from '../src/index.ts'
import { checkedApart, checkOptions, type Rule, required, timeLimit } from '../src/internal/check-options.ts'
import { toDelivery } from './node.ts'
import { acknowledge, decideDrain, limitDrain } from './shared/acknowledge.ts'
import { afterParsers } from './shared/after-parsers.ts'
import { checkReceiver } from './shared/check-receiver.ts'
import { fixInFastify } from './shared/consumed-body.ts'
import { announceClose, closeIdleConnections } from './shared/idle-connections.ts'

/** The options of `fastifyReceiver`. */
export interface FastifyReceiverOptions {
  /** The receiver, closed with the server. */
  readonly receiver: Pick<Receiver, 'receive' | 'close'> & Partial<Pick<Receiver, 'setup' | 'inbox'>>
  /** The path of the webhook, relative to the plugin's prefix. */
  readonly url: string
  /**
   * Maximum wait for handlers when the server closes (ms), counted from the last answer.
   * @defaultValue 10_000
   */
  readonly closeTimeoutMs?: number
}

const path: Rule = ["the path of the webhook, such as '/webhooks/media'", (value) => typeof value === 'string']

/** Our options, and those every Fastify plugin takes. */
const rules = {
  receiver: checkedApart,
  url: required(path),
  closeTimeoutMs: timeLimit,
  prefix: checkedApart,
  logLevel: checkedApart,
  logSerializers: checkedApart,
}

const onClosing =
  'fastifyReceiver: Fastify answers 503 to deliveries that arrive while it closes, and some senders never send them ' +
  'again: create Fastify with return503OnClosing: false'

/**
 * Fastify 5 and 4 plugin that mounts a receiver.
 *
 * ```ts
 * const app = fastify({ return503OnClosing: false })
 * app.register(fastifyReceiver, { receiver, url: '/webhooks/media' })
 * ```
 *
 * The receiver reads the body itself, in an encapsulated scope: the application's content type parsers and `bodyLimit`
 * do not apply. `app.close()` stops listening, waits for the requests in flight, then closes the receiver. Meanwhile
 * Fastify answers 503 to deliveries on open connections, unless `return503OnClosing` is `false`. Some senders never
 * retry those, so the receiver logs a warning at start-up.
 * @throws WebhookError `invalid_option`, as a rejection of `app.ready()`
 */
export const fastifyReceiver: FastifyPluginAsync<FastifyReceiverOptions> = async (scope, options) => {
  const { receiver, url, closeTimeoutMs: timeoutMs = 10_000 } = options
  checkReceiver('fastifyReceiver', receiver)
  checkOptions<FastifyReceiverOptions>('fastifyReceiver', options, rules)
  if (answers503OnClosing(scope)) receiver.setup?.logger.warn({ url }, onClosing)

  scope.removeAllContentTypeParsers()
  scope.addContentTypeParser('*', ({ raw }, payload, done) => {
    if (payload === raw && payload.readableFlowing === null) return done(null)
    // Another plugin's hook is reading the body. The bytes it keeps are complete at the end of the stream.
    finished(payload.resume(), () => done(null))
  })

  const answer = async (request: FastifyRequest, reply: FastifyReply) => {
    const { raw } = request
    const acknowledgement = await receiver.receive(afterParsers(toDelivery(raw), request, fixInFastify))
    const drain = decideDrain(acknowledgement, raw, reply.raw)
    if (drain === 'long') {
      // Fastify would end the response, and with it the connection, before the drain.
      for (const [name, value] of Object.entries(reply.getHeaders())) reply.raw.setHeader(name, value as string)
      return acknowledge(acknowledgement, raw, reply.hijack().raw)
    }
    if (drain !== 'none') limitDrain(drain, raw, reply.raw)
    const { status, headers, body } = acknowledgement
    // Bytes, because Fastify adds a charset to text. It would also write a body to HEAD.
    return reply
      .code(status)
      .headers(headers)
      .send(raw.method === 'HEAD' ? undefined : Buffer.from(body))
  }
  // Fastify 5 itself rejects an empty content type.
  const errorHandler = (error: FastifyError, request: FastifyRequest, reply: FastifyReply) =>
    error.code === 'FST_ERR_CTP_INVALID_MEDIA_TYPE' ? answer(request, reply) : reply.send(error)
  scope.post(url, { errorHandler }, answer)
  // Answers 405 to methods for which the application has no route: its static path takes precedence over a parameter.
  const fallback = url.replace(/(?<=\/)[\w-]+$/, ':path(^$&$)')
  if (fallback !== url) scope.all(fallback, { errorHandler }, answer)

  let stopClosingIdle = () => {}
  scope.addHook('preClose', async () => {
    receiver.inbox?.retryNow?.()
    await announceClose(scope.server)
    stopClosingIdle = closeIdleConnections(scope.server)
  })
  // Runs once the server has closed.
  scope.addHook('onClose', async () => {
    stopClosingIdle()
    await receiver.close({ timeoutMs })
  })
}

// What fastify-plugin would set. Fastify checks the version at registration.
Object.assign(fastifyReceiver, {
  [Symbol.for('fastify.display-name')]: 'media-webhooks',
  [Symbol.for('plugin-meta')]: { name: 'media-webhooks', fastify: '^4.16.0 || ^5.0.0' },
})

/** True if Fastify rejects requests while closing, its default. Only its private options know. */
function answers503OnClosing(scope: FastifyInstance): boolean {
  for (let each: object = scope; each !== Object.prototype; each = Object.getPrototypeOf(each)) {
    const symbol = Object.getOwnPropertySymbols(each).find(({ description }) => description === 'fastify.options')
    if (symbol !== undefined) return (each as never)[symbol]['return503OnClosing'] !== false
  }
  // A Fastify version that keeps them elsewhere.
  return false
}
