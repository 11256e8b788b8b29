import type { Endpoint } from './endpoint.ts'
import type { Reply } from './probe.ts'

/** What a check found. */
export interface Finding {
  /** What the endpoint has to do. */
  readonly check: string
  readonly verdict: 'ok' | 'warning' | 'failed' | 'skipped'
  readonly reason: string
  /** What to do about it. */
  readonly fix?: string
  /** What it does not say. */
  readonly note?: string
}

/**
 * Tries something, and reports each thing that it found.
 * @param first the reply to the first delivery, which was accepted
 */
export type Check = (endpoint: Endpoint, first: Reply) => AsyncIterable<Finding>

export const ok = (check: string, reason: string): Finding => ({ check, verdict: 'ok', reason })

export const failed = (check: string, reason: string, fix: string): Finding => ({
  check,
  verdict: 'failed',
  reason,
  fix,
})

/** A reply in words. */
export function told({ status, location, problem, durationMs }: Reply): string {
  if (problem !== undefined) return problem
  return `${status}${location === undefined ? '' : ` to ${location}`} in ${Math.round(durationMs)} ms`
}

export const wasAccepted = ({ status = 0 }: Reply): boolean => status >= 200 && status < 300

/**
 * The finding where a delivery has to be rejected.
 * @param fix for an endpoint that accepted it
 * @param accepted how bad that is
 */
export function rejection(check: string, reply: Reply, fix: string, accepted: Finding['verdict'] = 'failed'): Finding {
  const { status } = reply
  if (status === undefined) return failed(check, told(reply), `answer with 4xx instead of none: ${fix}`)
  if (wasAccepted(reply)) return { check, verdict: accepted, reason: `it was accepted: ${told(reply)}`, fix }
  if (status < 400) return failed(check, told(reply), 'answer deliveries where they arrive: redirects are not followed')
  if (status < 500) return ok(check, told(reply))
  return failed(check, told(reply), `5xx says that the endpoint broke, and asks for the delivery again: ${fix}`)
}
