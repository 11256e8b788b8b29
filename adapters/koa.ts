import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Receiver } from '../src/index.ts'
import { toDelivery } from './node.ts'
import { acknowledge, decideDrain, limitDrain } from './shared/acknowledge.ts'
import { afterParsers } from './shared/after-parsers.ts'
import { checkReceiver } from './shared/check-receiver.ts'
import { fixInKoa } from './shared/consumed-body.ts'

/** What `koaHandler` uses of Koa's context. Fits Koa 2 and 3. */
export interface KoaContext {
  readonly req: IncomingMessage
  readonly res: ServerResponse
  /** Koa's request, where body parsers leave the body. */
  readonly request: object
  respond?: boolean | undefined
  status: number
  body: unknown
  set(fields: { [name: string]: string }): void
}

/**
 * Mounts a receiver in Koa 3 or 2: on a `@koa/router` route, or with `app.use` behind a path check.
 *
 * ```ts
 * router.all('/webhooks/media', koaHandler(receiver))
 * ```
 *
 * Reads the body itself, or uses `ctx.request.rawBody`. Middleware before it can still change the response.
 * @returns a middleware that never rejects and never calls `next`
 * @throws WebhookError `invalid_option` without a receiver
 */
export function koaHandler(receiver: Pick<Receiver, 'receive'>): (context: KoaContext) => Promise<void> {
  checkReceiver('koaHandler', receiver)
  return async (context) => {
    const { req, res, request } = context
    const acknowledgement = await receiver.receive(afterParsers(toDelivery(req), request, fixInKoa))
    context.status = acknowledgement.status
    const drain = decideDrain(acknowledgement, req, res)
    if (drain === 'long') {
      // Koa would end the response, and with it the connection, before the drain.
      context.respond = false
      return acknowledge(acknowledgement, req, res)
    }
    if (drain !== 'none') limitDrain(drain, req, res)
    context.set(acknowledgement.headers)
    context.body = acknowledgement.body
  }
}
