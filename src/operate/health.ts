import { WebhookError } from '../errors.ts'
import { shared } from '../internal/shared.ts'
import { within } from '../internal/timers.ts'
import type { Receiver } from '../receiver/options.ts'

/** Time limit of a probe (ms): below that of Kubernetes, 1 s by default. */
const probeTimeoutMs = 900

/** What a probe answers, as JSON. */
export interface HealthReport {
  /** `live` and `ready` are answered 200, the others 503. */
  readonly status: 'live' | 'ready' | 'closing' | 'unavailable'
  /** Why it is not ready. Fixed texts, without names of hosts or users: the receiver's log has the cause. */
  readonly reason?: string
}

/** The members of Node's response that {@link Probe.node} uses. */
export interface ProbeResponse {
  writeHead(status: number, headers: Record<string, string>): unknown
  end(body?: string): unknown
}

/** An endpoint for a platform that asks how a process is. */
export interface Probe {
  /** Handles a web `Request`: Hono, Next.js, Bun, Deno. Never rejects. */
  fetch(this: void, request?: Request): Promise<Response>
  /** Handles a Node request: `node:http`, Express, Koa, Fastify. Never rejects. */
  node(this: void, request: { readonly method?: string | undefined }, response: ProbeResponse): Promise<void>
}

/** What {@link health} returns. */
export interface Health {
  /**
   * Answers 200 for as long as the process answers at all: also while the storage is away, and while the receiver
   * closes. A restart would cure neither, and would cost running handlers.
   */
  readonly live: Probe
  /**
   * Answers 200 if a delivery would be accepted. 503 while the receiver opens or closes, and while it can't reach its
   * storage: it would answer deliveries 503 too, and another process may reach it. Answers within a second.
   */
  readonly ready: Probe
}

/**
 * Makes the probes of a process: whether it lives, and whether it is ready for deliveries.
 *
 * ```ts
 * const { live, ready } = health(receiver)
 * app.get('/live', live.node) // Express
 * app.get('/ready', (c) => ready.fetch(c.req.raw)) // Hono
 * ```
 *
 * A memory inbox is ready until it closes: the shared store that it may have is not asked. Nor are queues and Durable
 * Objects. Answers are JSON, a {@link HealthReport}, and never cached.
 * @param receiver a receiver, or several, all of which must be ready
 * @throws WebhookError `invalid_option` without a receiver
 */
export function health(receiver: Pick<Receiver, 'ready'> | readonly Pick<Receiver, 'ready'>[]): Health {
  const receivers = [receiver].flat() as readonly (Pick<Receiver, 'ready'> | undefined)[]
  if (receivers.length === 0 || !receivers.every((each) => typeof each?.ready === 'function'))
    throw new WebhookError(
      'invalid_option',
      'health: give it a receiver; are the parentheses of createReceiver() missing?',
    )
  // Any number of probes at a time ask the storage once.
  const check = shared(() => within(probeTimeoutMs, Promise.all(receivers.map((each) => each?.ready())), late))
  const ready = async (): Promise<HealthReport> => {
    try {
      await check()
      return { status: 'ready' }
    } catch (error) {
      if ((error as Partial<WebhookError> | undefined)?.code === 'closing')
        return { status: 'closing', reason: 'the receiver is closing' }
      return { status: 'unavailable', reason: 'the inbox is not open yet, or cannot reach its storage' }
    }
  }
  return { live: probe(async () => ({ status: 'live' })), ready: probe(ready) }
}

function late(): never {
  throw new WebhookError('unavailable', 'no answer in time')
}

function probe(report: () => Promise<HealthReport>): Probe {
  const answer = async (method = 'GET') => {
    const reported = await report()
    const status = reported.status === 'live' || reported.status === 'ready' ? 200 : 503
    return { status, body: method === 'HEAD' ? undefined : JSON.stringify(reported) }
  }
  const headers = { 'content-type': 'application/json', 'cache-control': 'no-store' }
  return {
    async fetch(request) {
      const { status, body = null } = await answer(request?.method)
      return new Response(body, { status, headers })
    },
    async node(request, response) {
      const { status, body } = await answer(request.method)
      response.writeHead(status, headers)
      response.end(body)
    },
  }
}
