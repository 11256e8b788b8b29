import type { IncomingMessage } from 'node:http'
import type { Context } from 'hono'
import type { ContentfulStatusCode } from 'hono/utils/http-status'
import type { Delivery, Receiver } from '../src/index.ts'
import { checkReceiver } from './check-receiver.ts'
import { toDelivery } from './node.ts'
import { findWaitUntil, unreadBody } from './web.ts'

/**
 * Mounts a receiver in Hono, on Node or any other runtime, with `app.post`, `app.all` or `app.use`, also under
 * `app.route`. A middleware before it may read the body through `c.req`.
 *
 * ```ts
 * app.post('/webhooks/media', honoHandler(receiver))
 * ```
 * @returns a handler that never rejects
 * @throws WebhookError `invalid_option` when it is given no receiver
 */
export function honoHandler(receiver: Pick<Receiver, 'receive'>): (context: Context) => Promise<Response> {
  checkReceiver('honoHandler', receiver)
  return async (context) => {
    const { status, headers, body } = await receiver.receive(await readDelivery(context))
    return context.body(body, status as ContentfulStatusCode, headers)
  }
}

async function readDelivery(context: Context): Promise<Delivery> {
  const { req } = context
  const cached = await cachedBody(req.bodyCache)
  const incoming = context.env?.incoming
  // On Node the underlying request is read directly: a web `Request` made from it costs more than the rest of the path.
  if (cached === undefined && isUntouched(incoming)) return toDelivery(incoming)
  const { method, url, headers } = req.raw
  const waitUntil = findWaitUntil(() => [context.executionCtx])
  return { method, url, headers, body: cached ?? unreadBody(req.raw), waitUntil }
}

/**
 * Says whether this is a Node request that nothing has begun to read. Even a middleware that only looked at
 * `c.req.raw.body` has created a stream, which has begun to take the data.
 */
function isUntouched(incoming: Partial<IncomingMessage> | undefined): incoming is IncomingMessage {
  return Array.isArray(incoming?.rawHeaders) && incoming.readableFlowing === null && !incoming.readableDidRead
}

/** Returns the body that a middleware has read through `c.req`. */
async function cachedBody({
  arrayBuffer,
  text,
  blob,
  json,
}: Context['req']['bodyCache']): Promise<Delivery['body'] | undefined> {
  try {
    // Older versions of Hono cache parsed JSON without its bytes. JSON written from it is not what was signed.
    if (json !== undefined) return { parsed: await json }
    const body = await (arrayBuffer ?? text ?? blob)
    if (body === undefined) return undefined
    return async () => new Uint8Array(await new Response(body).arrayBuffer())
  } catch {
    // The middleware could not read it either.
    return () => 'incomplete'
  }
}
