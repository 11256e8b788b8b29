import type { IncomingMessage } from 'node:http'
import type { Context, Env as HonoEnv } from 'hono'
import type { ContentfulStatusCode } from 'hono/utils/http-status'
import type { Delivery } from '../src/index.ts'
import { toDelivery } from './node.ts'
import { withByteOrderMark } from './shared/after-parsers.ts'
import { fixInHono } from './shared/consumed-body.ts'
import { MountedReceiver, noReceiver, type ReceiverSource } from './shared/mounted-receiver.ts'
import { findWaitUntil, unreadBody } from './shared/web.ts'

/**
 * Mounts a receiver in Hono, on Node or any other runtime, with `app.post`, `app.all` or `app.use`, also under
 * `app.route`. A middleware before it may read the body through `c.req`.
 *
 * ```ts
 * app.post('/webhooks/media', honoHandler(receiver))
 * app.post('/webhooks/media', honoHandler((c) => makeReceiver(c.env))) // Workers
 * ```
 * @param receiver the receiver, or a function that makes it at the first delivery, from Hono's context. It may return a
 * promise. If it fails, the delivery is answered 500 `internal`, the reason is written to the console, and the next
 * delivery calls it again.
 * @returns a handler that never rejects
 * @throws WebhookError `invalid_option` when it is given neither a receiver nor a function
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
    // Every server adds the length of a text itself. Hono takes a single field as it is. Of several it makes a
    // `Headers`, at a tenth of the CPU of a delivery.
    const { 'content-length': _, ...fields } = headers
    const code = status as ContentfulStatusCode
    return delivery.method === 'HEAD' ? context.body(null, code, fields) : context.body(body, code, fields)
  }
}

// Hono throws when the context is read and the platform has passed none.
const findWait = (context: Context) => findWaitUntil(() => [context.executionCtx])

async function readDelivery(context: Context): Promise<Delivery> {
  const { req } = context
  const cached = await cachedBody(req)
  const incoming = context.env?.incoming
  // On Node the underlying request is read directly: a web `Request` made from it costs more than the rest of the path.
  if (cached === undefined && isUntouched(incoming)) return toDelivery(incoming)
  const { method, url, headers } = req.raw
  return { method, url, headers, body: cached ?? unreadBody(req.raw, fixInHono), waitUntil: findWait(context) }
}

/**
 * Returns true if this is a Node request that nothing has begun to read. Even a middleware that only looked at
 * `c.req.raw.body` has created a stream, which has begun to take the data.
 */
function isUntouched(incoming: Partial<IncomingMessage> | undefined): incoming is IncomingMessage {
  return Array.isArray(incoming?.rawHeaders) && incoming.readableFlowing === null && !incoming.readableDidRead
}

/** Returns the body that a middleware has read through `c.req`. */
async function cachedBody({ bodyCache, raw }: Context['req']): Promise<Delivery['body'] | undefined> {
  const { arrayBuffer, text, blob, json } = bodyCache
  try {
    // Older versions of Hono cache parsed JSON without its bytes. JSON written from it is not what was signed.
    if (json !== undefined) return { parsed: await json, fix: fixInHono }
    const body = await (arrayBuffer ?? text ?? blob)
    if (body === undefined) return undefined
    return async () => withByteOrderMark(new Uint8Array(await new Response(body).arrayBuffer()), raw.headers)
  } catch {
    // The middleware also failed to read it.
    return () => 'incomplete'
  }
}
