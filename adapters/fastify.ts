import { finished } from 'node:stream'
import type { FastifyInstance, FastifyPluginAsync } from 'fastify'
import type { Receiver } from '../src/index.ts'
import { checkedApart, checkOptions, type Rule, required, timeLimit } from '../src/internal/check-options.ts'
import { toDelivery } from './node.ts'
import { acknowledge, drainOf, limitDrain } from './shared/acknowledge.ts'
import { afterParsers } from './shared/after-parsers.ts'
import { checkReceiver } from './shared/check-receiver.ts'
import { fixInFastify } from './shared/consumed-body.ts'
import { closeIdleConnections } from './shared/idle-connections.ts'

/** The options of `fastifyReceiver`. */
export interface FastifyReceiverOptions {
  /** The receiver. It is closed with the server. */
  readonly receiver: Pick<Receiver, 'receive' | 'close'> & Partial<Pick<Receiver, 'setup' | 'inbox'>>
  /** The path of the webhook, under the prefix of the plugin if it is registered with one. */
  readonly url: string
  /**
   * Maximum wait for handlers when the server closes, in ms. It begins once the requests in flight are answered.
   * @defaultValue 10_000
   */
  readonly closeTimeoutMs?: number
}

const path: Rule = ["the path of the webhook, such as '/webhooks/media'", (value) => typeof value === 'string']

/** Its own options, and those that Fastify takes for every plugin. */
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
  'again: create it with return503OnClosing: false'

/**
 * Mounts a receiver in Fastify 5 or 4, as a plugin.
 *
 * ```ts
 * const app = fastify({ return503OnClosing: false })
 * app.register(fastifyReceiver, { receiver, url: '/webhooks/media' })
 * ```
 *
 * The receiver reads the body itself, in a scope of its own. The content type parsers and `bodyLimit` of the
 * application stay as they are, and do not apply to it. `app.close()` stops listening, lets the requests in flight be
 * answered, and then closes the receiver. Without `return503OnClosing: false`, Fastify itself answers 503 to deliveries
 * that arrive over open connections meanwhile. Some senders never send those again. The receiver's log says so at the
 * start.
 * @throws WebhookError `invalid_option`; `app.ready()` rejects with it
 */
export const fastifyReceiver: FastifyPluginAsync<FastifyReceiverOptions> = async (scope, options) => {
  const { receiver, url, closeTimeoutMs: timeoutMs = 10_000 } = options
  checkReceiver('fastifyReceiver', receiver)
  checkOptions<FastifyReceiverOptions>('fastifyReceiver', options, rules)
  if (answers503OnClosing(scope)) receiver.setup?.logger.warn({ url }, onClosing)

  scope.removeAllContentTypeParsers()
  scope.addContentTypeParser('*', ({ raw }, payload, done) => {
    if (payload === raw && payload.readableFlowing === null) return done(null)
    // A hook of another plugin reads it. The bytes that the plugin keeps are there after the end.
    finished(payload.resume(), () => done(null))
  })

  scope.all(url, async (request, reply) => {
    const { raw } = request
    const acknowledgement = await receiver.receive(afterParsers(toDelivery(raw), request, fixInFastify))
    const drain = drainOf(acknowledgement, raw)
    if (drain === 'long') {
      // Fastify ends a response with its body, and the connection with it.
      for (const [name, value] of Object.entries(reply.getHeaders())) reply.raw.setHeader(name, value as string)
      return acknowledge(acknowledgement, raw, reply.hijack().raw)
    }
    if (drain !== 'none') limitDrain(drain, raw, reply.raw)
    const { status, headers, body } = acknowledgement
    // Fastify would add a charset to the type of text, and write the body of an answer to HEAD.
    return reply
      .code(status)
      .headers(headers)
      .send(raw.method === 'HEAD' ? undefined : Buffer.from(body))
  })

  let stopClosingIdle = () => {}
  scope.addHook('preClose', async () => {
    receiver.inbox?.retryNow?.()
    stopClosingIdle = closeIdleConnections(scope.server)
  })
  // Fastify calls it once the server has closed.
  scope.addHook('onClose', async () => {
    stopClosingIdle()
    await receiver.close({ timeoutMs })
  })
}

// The symbols that fastify-plugin would add. Fastify checks the version when it registers the plugin.
Object.assign(fastifyReceiver, {
  [Symbol.for('fastify.display-name')]: 'media-webhooks',
  [Symbol.for('plugin-meta')]: { name: 'media-webhooks', fastify: '^4.16.0 || ^5.0.0' },
})

/** Returns true if Fastify rejects requests while it closes. This is its default, and only its private options tell. */
function answers503OnClosing(scope: FastifyInstance): boolean {
  for (let each: object = scope; each !== Object.prototype; each = Object.getPrototypeOf(each)) {
    const symbol = Object.getOwnPropertySymbols(each).find(({ description }) => description === 'fastify.options')
    if (symbol !== undefined) return (each as never)[symbol]['return503OnClosing'] !== false
  }
  // Another version of Fastify hides them elsewhere.
  return false
}
