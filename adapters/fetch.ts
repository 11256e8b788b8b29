import type { Delivery } from '../src/index.ts'
import { aFunction, checkOptions } from '../src/internal/check-options.ts'
import { MountedReceiver, noReceiver, type ReceiverSource } from './shared/mounted-receiver.ts'
import { endReading, findWaitUntil, unreadBody } from './shared/web.ts'

/** The options of `fetchHandler`. */
export interface FetchHandlerOptions {
  /**
   * Keeps the platform running until a promise settles: `after` of `next/server`, `waitUntil` of `@vercel/functions`.
   * @defaultValue `waitUntil` of the context that the platform passes, if any
   */
  readonly waitUntil?: (promise: Promise<unknown>) => unknown
}

/**
 * Mounts a receiver wherever a handler maps `Request` to `Response`: Next.js, Workers, Bun, Deno.
 *
 * ```ts
 * export const POST = fetchHandler(() => makeReceiver(), { waitUntil: after }) // Next.js
 * export default { fetch: fetchHandler((env: Env) => makeReceiver(env)) } // Workers
 * export default { fetch: fetchHandler(receiver) } // Bun, Deno
 * ```
 * @param receiver the receiver, or a function (sync or async) that makes it at the first delivery, so builds need no
 * secrets. Called with what the platform passes after the request (on Workers `env` and the context). While it fails,
 * deliveries are answered 500 `internal`, the reason goes to the console, and the next delivery tries again.
 * @returns a function that never rejects
 * @throws WebhookError `invalid_option` without a receiver or a function, or for a wrong option
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
    // (request, env, context) on Workers; (request, context) on Netlify, Vercel and others.
    const waitUntil = givenWaitUntil ?? findWaitUntil(() => context)
    const resolved = mounted.ready ?? (await mounted.get(context as unknown as Context))
    const delivery: Delivery = { method, url, headers, body: unreadBody(request), waitUntil }
    const { status, ...answer } = resolved === undefined ? noReceiver : await resolved.receive(delivery)
    endReading(request)
    return new Response(method === 'HEAD' ? null : answer.body, { status, headers: answer.headers })
  }
}
