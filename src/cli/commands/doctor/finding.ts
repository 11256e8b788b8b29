import type { Endpoint } from './endpoint.ts'
import type { Reply } from './probe.ts'

export interface Finding {
  readonly check: string
  readonly verdict: 'ok' | 'warning' | 'failed' | 'skipped'
  readonly reason: string
  readonly fix?: string
}

/** @param first the reply to the first, acknowledged delivery */
export type DoctorCheck = (endpoint: Endpoint, first: Reply) => AsyncIterable<Finding>

export const ok = (check: string, reason: string): Finding => ({ check, verdict: 'ok', reason })

export const failed = (check: string, reason: string, fix: string): Finding => ({
  check,
  verdict: 'failed',
  reason,
  fix,
})

export function inWords({ status, location, problem, durationMs }: Reply): string {
  if (problem !== undefined) return problem
  return `${status}${location === undefined ? '' : ` to ${location}`} in ${Math.round(durationMs)} ms`
}

export const wasAccepted = ({ status = 0 }: Reply): boolean => status >= 200 && status < 300

export const isUnauthorized = ({ status }: Reply): boolean => status === 401 || status === 403

/** Judges the reply to a delivery that must be rejected. `fix` and `accepted` apply if the endpoint accepts it. */
export function mustReject(check: string, reply: Reply, fix: string, accepted: Finding['verdict'] = 'failed'): Finding {
  const { status } = reply
  if (status === undefined) return failed(check, inWords(reply), `answer 4xx: ${fix}`)
  if (wasAccepted(reply)) return { check, verdict: accepted, reason: `${inWords(reply)}, which acknowledges it`, fix }
  if (status < 400) return failed(check, inWords(reply), 'answer at this URL: the service does not follow redirects')
  if (status < 500) return ok(check, inWords(reply))
  return failed(check, inWords(reply), `5xx means that the endpoint failed, and may trigger a retry: ${fix}`)
}

/**
 * Only 401 and 403 prove that credentials are checked.
 * @param verdicts for an accepted delivery, and for any other 4xx
 */
export function mustBeUnauthorized(
  check: string,
  reply: Reply,
  fix: string,
  { accepted, other }: { readonly accepted: Finding['verdict']; readonly other: Finding['verdict'] },
): Finding {
  const { status = 0 } = reply
  if (status < 400 || status >= 500 || isUnauthorized(reply) || other === 'ok') {
    return mustReject(check, reply, fix, accepted)
  }
  const reason = `${inWords(reply)}: only 401 and 403 show that credentials are checked`
  return { check, verdict: other, reason, fix: `answer 401 to wrong credentials. If nothing checks them, ${fix}` }
}
