import type { Receiver } from '../src/index.ts'
import { checkReceiver } from './check-receiver.ts'
import { findWaitUntil, unreadBody } from './web.ts'

/**
 * Mounts a receiver wherever a handler takes a `Request` and returns a `Response`: Next.js, Workers, Bun, Deno. If the
 * runtime's context has `waitUntil`, the runtime stays alive until the event has been handled.
 *
 * ```ts
 * export const POST = fetchHandler(receiver) // Next.js
 * export default { fetch: fetchHandler(receiver) } // Workers, Bun, Deno
 * ```
 * @returns a function that never rejects
 * @throws WebhookError `invalid_option` when it is given no receiver
 */
export function fetchHandler(receiver: Pick<Receiver, 'receive'>) {
  checkReceiver('fetchHandler', receiver)
  return async (request: Request, ...context: readonly unknown[]): Promise<Response> => {
    const { method, url, headers } = request
    // Workers pass (request, env, context); Netlify, Vercel and others (request, context).
    const waitUntil = findWaitUntil(() => context)
    const { status, ...answer } = await receiver.receive({ method, url, headers, body: unreadBody(request), waitUntil })
    return new Response(answer.body, { status, headers: answer.headers })
  }
}
