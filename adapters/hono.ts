import type { IncomingMessage } from 'node:http'
import type { Context, Env as HonoEnv } from 'hono'
import type { ContentfulStatusCode } from 'hono/utils/http-status'
import type { Delivery } from '../src/index.ts'
import { toDelivery } from './node.ts'
import { withByteOrderMark } from './shared/after-parsers.ts'
import { fixInHono } from './shared/consumed-body.ts'
import { MountedReceiver, noReceiver, type ReceiverSource } from './shared/mounted-receiver.ts'
import { endReading, findWaitUntil, unreadBody } from './shared/web.ts'

/**
 * Mounts a receiver in Hono on any runtime, with `app.post`, `app.all`, `app.use` or under `app.route`. Middleware
 * before it may read the body through `c.req`.
 *
 * ```ts
 * app.post('/webhooks/media', honoHandler(receiver))
 * app.post('/webhooks/media', honoHandler((c) => makeReceiver(c.env))) // Workers
 * ```
 * @param receiver the receiver, or a function (sync or async) that makes it from Hono's context at the first delivery.
 * While it fails, deliveries are answered 500 `internal`, and the reason goes to the console. The next one tries again.
 * @returns a handler that never rejects
 * @throws WebhookError `invalid_option` without a receiver or a function
 */
// biome-ignore lint/suspicious/noExplicitAny: the environment of the user's application
export function honoHandler<Env extends HonoEnv = any>(
  receiver: ReceiverSource<[context: Context<Env>]>,
): (context: Context<Env>) => Promise<Response> {
  const mounted = new MountedReceiver('honoHandler', receiver)
  return async (context) => {
    const delivery = await readDelivery(context)
    const resolved = mounted.ready ?? (await mounted.get([context]))
    const { status, headers, body } = resolved === undefined ? noReceiver : await resolved.receive(delivery)
    endReading(context.req.raw)
    // Servers add content-length themselves. With only one header left, Hono skips building a slow `Headers`.
    const { 'content-length': _, ...fields } = headers
    const code = status as ContentfulStatusCode
    return delivery.method === 'HEAD' ? context.body(null, code, fields) : context.body(body, code, fields)
  }
}

// `executionCtx` throws if the platform passed none.
const findWait = (context: Context) => findWaitUntil(() => [context.executionCtx])

async function readDelivery(context: Context): Promise<Delivery> {
  const { req } = context
  const cached = await cachedBody(req)
  const incoming = context.env?.incoming
  // On Node, read the underlying request: building a web `Request` costs more than the whole delivery path.
  if (cached === undefined && isUntouched(incoming)) return toDelivery(incoming)
  const { method, url, headers } = req.raw
  return { method, url, headers, body: cached ?? unreadBody(req.raw, fixInHono), waitUntil: findWait(context) }
}

/** True for a Node request that nobody has started to read. Merely touching `c.req.raw.body` starts it. */
function isUntouched(incoming: Partial<IncomingMessage> | undefined): incoming is IncomingMessage {
  return Array.isArray(incoming?.rawHeaders) && incoming.readableFlowing === null && !incoming.readableDidRead
}

/** The body, if a middleware read it through `c.req`. */
async function cachedBody({ bodyCache, raw }: Context['req']): Promise<Delivery['body'] | undefined> {
  const { arrayBuffer, text, blob, json } = bodyCache
  try {
    // Older Hono caches parsed JSON without its bytes. Re-serialised, it is not what was signed.
    if (json !== undefined) return { parsed: await json, fix: fixInHono }
    const body = await (arrayBuffer ?? text ?? blob)
    if (body === undefined) return undefined
    return async () => withByteOrderMark(new Uint8Array(await new Response(body).arrayBuffer()), raw.headers)
  } catch {
    // The middleware's read failed.
    return () => 'incomplete'
  }
}
