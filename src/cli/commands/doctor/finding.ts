import type { Endpoint } from './endpoint.ts'
import type { Reply } from './probe.ts'

/** The result of one check. */
export interface Finding {
  /** The behaviour that the endpoint should show. */
  readonly check: string
  readonly verdict: 'ok' | 'warning' | 'failed' | 'skipped'
  readonly reason: string
  /** The way to fix it. */
  readonly fix?: string
  /** A limit of the check. */
  readonly note?: string
}

/**
 * Tries one aspect of an endpoint, and yields its findings.
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

/** Describes a reply in words. */
export function inWords({ status, location, problem, durationMs }: Reply): string {
  if (problem !== undefined) return problem
  return `${status}${location === undefined ? '' : ` to ${location}`} in ${Math.round(durationMs)} ms`
}

export const wasAccepted = ({ status = 0 }: Reply): boolean => status >= 200 && status < 300

/**
 * Judges the reply to a delivery that the endpoint must reject.
 * @param fix the fix if the endpoint accepted it
 * @param accepted the verdict if the endpoint accepted it
 */
export function mustReject(check: string, reply: Reply, fix: string, accepted: Finding['verdict'] = 'failed'): Finding {
  const { status } = reply
  if (status === undefined) return failed(check, inWords(reply), `answer with 4xx instead of none: ${fix}`)
  if (wasAccepted(reply)) return { check, verdict: accepted, reason: `it was accepted: ${inWords(reply)}`, fix }
  if (status < 400) return failed(check, inWords(reply), 'answer at this URL: the service does not follow redirects')
  if (status < 500) return ok(check, inWords(reply))
  return failed(check, inWords(reply), `5xx means that the endpoint failed, and can cause a retry: ${fix}`)
}
