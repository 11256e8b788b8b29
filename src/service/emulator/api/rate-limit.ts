import type { MiddlewareHandler } from 'hono'
import { HTTPException } from 'hono/http-exception'
import type { Clock } from '../shared/clock.ts'
import { requestsPerMinute } from '../shared/undocumented.ts'
import type { ApiEnv } from './identity.ts'

const minute = 60_000_000_000n

/** Limits requests per credential and clock minute. Requests without valid credentials share a count. */
export function rateLimit(clock: Clock): MiddlewareHandler<ApiEnv> {
  const requests = new Map<string, number>()
  let countedMinute = 0n

  return async (context, next) => {
    const now = clock()
    if (now / minute !== countedMinute) requests.clear()
    countedMinute = now / minute
    const identity = context.get('identity')
    const credential = 'rejected' in identity ? '' : identity.id
    const count = (requests.get(credential) ?? 0) + 1
    requests.set(credential, count)

    const retryAfter = Math.ceil(Number(minute - (now % minute)) / 1e9)
    context.header('X-RateLimit-Limit', `${requestsPerMinute}`)
    context.header('X-RateLimit-Remaining', `${Math.max(requestsPerMinute - count, 0)}`)
    context.header('X-RateLimit-Retry-After', `${retryAfter}`)
    if (count <= requestsPerMinute) return next()
    context.header('Retry-After', `${retryAfter}`)
    throw new HTTPException(429, { message: `more than ${requestsPerMinute} requests in a minute` })
  }
}
