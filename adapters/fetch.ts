import type { Delivery } from '../src/index.ts'
import { aFunction, checkOptions } from '../src/internal/check-options.ts'
import { MountedReceiver, noReceiver, type ReceiverSource } from './shared/mounted-receiver.ts'
import { findWaitUntil, unreadBody } from './shared/web.ts'

/** The options of `fetchHandler`. */
export interface FetchHandlerOptions {
  /**
   * Keeps the platform running until a promise has settled, such as `after` of `next/server` or `waitUntil` of
   * `@vercel/functions`.
   * @defaultValue the method `waitUntil` of the context that the platform passes with a request, if it passes one
   */
  readonly waitUntil?: (promise: Promise<unknown>) => unknown
}

/**
 * Mounts a receiver in platforms whose handlers take a `Request` and return a `Response`: Next.js, Workers, Bun, Deno.
 *
 * ```ts
 * export const POST = fetchHandler(() => makeReceiver(), { waitUntil: after }) // Next.js
 * export default { fetch: fetchHandler((env: Env) => makeReceiver(env)) } // Workers
 * export default { fetch: fetchHandler(receiver) } // Bun, Deno
 * ```
 * @param receiver the receiver, or a function that makes it at the first delivery, so that a build needs no secrets and
 * opens no file. It gets the arguments that the platform passes after the request (on Workers `env` and the context),
 * and may return a promise. If it fails, the delivery is answered 500 `internal`, the reason is written to the console,
 * and the next delivery calls it again.
 * @returns a function that never rejects
 * @throws WebhookError `invalid_option` when it is given neither a receiver nor a function, or a wrong option
 */
export function fetchHandler<Context extends readonly unknown[] = []>(
  receiver: ReceiverSource<Context>,
  options: FetchHandlerOptions = {},
): (request: Request, ...context: [...Context, ...unknown[]]) => Promise<Response> {
  const mounted = new MountedReceiver('fetchHandler', receiver)
  checkOptions('fetchHandler', options, { waitUntil: aFunction })
  const { waitUntil: givenWaitUntil } = options
  return async (request, ...context) => {
    const { method, url, headers } = request
    // Workers pass (request, env, context); Netlify, Vercel and others (request, context).
    const waitUntil = givenWaitUntil ?? findWaitUntil(() => context)
    const resolved = mounted.ready ?? (await mounted.get(context as unknown as Context))
    const delivery: Delivery = { method, url, headers, body: unreadBody(request), waitUntil }
    const { status, ...answer } = resolved === undefined ? noReceiver : await resolved.receive(delivery)
    return new Response(method === 'HEAD' ? null : answer.body, { status, headers: answer.headers })
  }
}
