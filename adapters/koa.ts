import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Receiver } from '../src/index.ts'
import { toDelivery } from './node.ts'
import { acknowledge, drainOf, limitDrain } from './shared/acknowledge.ts'
import { afterParsers } from './shared/after-parsers.ts'
import { checkReceiver } from './shared/check-receiver.ts'
import { fixInKoa } from './shared/consumed-body.ts'

/** The members of Koa's context that `koaHandler` uses. The contexts of Koa 2 and 3 fit. */
export interface KoaContext {
  readonly req: IncomingMessage
  readonly res: ServerResponse
  /** Koa's own request, on which body parsers leave the body. */
  readonly request: object
  respond?: boolean | undefined
  status: number
  body: unknown
  set(fields: { [name: string]: string }): void
}

/**
 * Mounts a receiver in Koa 3 or 2: on a route of `@koa/router`, or with `app.use` behind a check of the path.
 *
 * ```ts
 * router.all('/webhooks/media', koaHandler(receiver))
 * ```
 *
 * It reads the body itself, or uses the bytes that a parser has kept in `ctx.request.rawBody`. Its answer is the
 * response of Koa's context, which the middleware before it can change.
 * @returns a middleware that never rejects, and never calls the next one
 * @throws WebhookError `invalid_option` when it is given no receiver
 */
export function koaHandler(receiver: Pick<Receiver, 'receive'>): (context: KoaContext) => Promise<void> {
  checkReceiver('koaHandler', receiver)
  return async (context) => {
    const { req, res, request } = context
    const acknowledgement = await receiver.receive(afterParsers(toDelivery(req), request, fixInKoa))
    context.status = acknowledgement.status
    const drain = drainOf(acknowledgement, req)
    if (drain === 'long') {
      // Koa ends a response with its body, and the connection with it.
      context.respond = false
      return acknowledge(acknowledgement, req, res)
    }
    if (drain !== 'none') limitDrain(drain, req, res)
    context.set(acknowledgement.headers)
    context.body = acknowledgement.body
  }
}
