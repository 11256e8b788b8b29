import { WebhookError } from '../errors.ts'
import { contentHeaders } from '../internal/content-headers.ts'
import type { Acknowledgement, RejectionCode, Success } from './delivery.ts'

const rejectionStatus: Record<RejectionCode, number> = {
  unauthorized: 401,
  malformed: 400,
  incomplete: 400,
  method_not_allowed: 405,
  unsupported_media_type: 415,
  too_large: 413,
  overloaded: 503,
  closing: 503,
  unavailable: 503,
  in_progress: 503,
  handler_failed: 500,
  body_consumed: 500,
  internal: 500,
}

/** `Retry-After` (s): the delay that the service documents between its attempts. */
const retryAfter = '3'

const makeHeaders = (body: string) => contentHeaders('application/json', body)

// Exactly 200: the service's test delivery fails on any other 2xx.
function success(outcome: Success): Acknowledgement {
  const body = JSON.stringify({ status: outcome })
  return Object.freeze({ outcome, status: 200, headers: Object.freeze(makeHeaders(body)), body })
}

export const acknowledged = {
  accepted: success('accepted'),
  duplicate: success('duplicate'),
  ignored: success('ignored'),
  test: success('test'),
  handled: success('handled'),
} as const

/** Last acknowledgement per code. A flood of forged deliveries gets the same answer again and again. */
const newest = new Map<RejectionCode, readonly [message: string, Acknowledgement]>()

export function rejection(code: RejectionCode, message: string): Acknowledgement {
  const known = newest.get(code)
  if (known?.[0] === message) return known[1]
  const status = rejectionStatus[code]
  const body = JSON.stringify({ status: 'error', code, message })
  const headers = makeHeaders(body)
  if (status === 405) headers['allow'] = 'POST'
  if (status === 503) headers['retry-after'] = retryAfter
  const acknowledgement = Object.freeze({ outcome: code, status, headers: Object.freeze(headers), body })
  newest.set(code, [message, acknowledgement])
  return acknowledgement
}

export type RejectionError = WebhookError & { readonly code: RejectionCode }

/** Turns any other error into `internal`, to keep its message from the sender. */
export function toRejectionError(error: unknown): RejectionError {
  if (error instanceof WebhookError && Object.hasOwn(rejectionStatus, error.code)) return error as RejectionError
  return new WebhookError('internal', 'the receiver failed', { cause: error }) as RejectionError
}
