import { WebhookError, type WebhookErrorCode } from '../errors.ts'
import { encoder } from '../internal/utf8.ts'

/** Why a delivery was rejected. */
export type RejectionCode = Exclude<
  WebhookErrorCode,
  'invalid_option' | 'invalid_transaction' | 'timeout' | 'stopped' | 'lease_lost'
>

export type Success = 'accepted' | 'duplicate' | 'ignored' | 'test' | 'handled'

/** What became of a delivery: a success, a handshake that was answered, or its rejection code. */
export type DeliveryOutcome = Success | 'challenge' | RejectionCode

/** How many events of a delivery with a list of them had each outcome. */
export type EventCounts = Readonly<Partial<Record<Success, number>>>

/** The HTTP answer to a delivery. */
export interface Acknowledgement {
  /** For logs and metrics. */
  readonly outcome: DeliveryOutcome
  /** 200 for a success, otherwise 4xx or 5xx. */
  readonly status: number
  /** Lower-case names. Includes `content-length`. */
  readonly headers: Readonly<Record<string, string>>
  /** JSON text, or what `challenge` answers. */
  readonly body: string
  /** Only of a delivery with a list of events. */
  readonly events?: EventCounts | undefined
}

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

const makeHeaders = (body: string) => ({
  'content-type': 'application/json',
  'content-length': String(encoder.encode(body).byteLength),
})

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

/** What a list is answered: the best that became of its events. */
const best = ['handled', 'accepted', 'duplicate', 'test'] as const

export function acknowledgedList(events: EventCounts): Acknowledgement {
  const outcome = best.find((each) => events[each] !== undefined) ?? 'ignored'
  // Nothing to handle, not even in vain.
  if (Object.keys(events).length === 0) return acknowledged.ignored
  const body = JSON.stringify({ status: outcome, events })
  return { ...acknowledged[outcome], headers: makeHeaders(body), body, events }
}

/** Last acknowledgement per code. A flood of forged deliveries gets the same answer again and again. */
const newest = new Map<RejectionCode, readonly [message: string, Acknowledgement]>()

export function rejection(code: RejectionCode, message: string): Acknowledgement {
  const known = newest.get(code)
  if (known?.[0] === message) return known[1]
  const status = rejectionStatus[code]
  const body = JSON.stringify({ status: 'error', code, message })
  const headers: Record<string, string> = makeHeaders(body)
  if (status === 405) headers.allow = 'POST'
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
