import { WebhookError, type WebhookErrorCode } from '../errors.ts'
import { encoder } from '../internal/utf8.ts'

/** The code of a rejection. */
export type RejectionCode = Exclude<
  WebhookErrorCode,
  'invalid_option' | 'invalid_transaction' | 'timeout' | 'stopped' | 'lease_lost'
>

/** The outcomes that are answered with 200. */
export type Success = 'accepted' | 'duplicate' | 'ignored' | 'test' | 'handled'

/** The outcome of a delivery: a success, or the code of its rejection. */
export type DeliveryOutcome = Success | RejectionCode

/** The HTTP answer to a delivery. */
export interface Acknowledgement {
  /** The outcome, for logs and metrics. */
  readonly outcome: DeliveryOutcome
  /** The HTTP status: 200 for a success, otherwise 4xx or 5xx. */
  readonly status: number
  /** Header fields with names in lower case; Content-Length is among them. */
  readonly headers: Readonly<Record<string, string>>
  /** JSON text. */
  readonly body: string
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

/** In seconds: the service's documented pause between the attempts of a delivery. */
const retryAfter = '3'

const headersOf = (body: string) => ({
  'content-type': 'application/json',
  'content-length': String(encoder.encode(body).byteLength),
})

// Exactly 200: the service's test delivery counts no other status as success.
function success(outcome: Success): Acknowledgement {
  const body = JSON.stringify({ status: outcome })
  return Object.freeze({ outcome, status: 200, headers: Object.freeze(headersOf(body)), body })
}

/** The acknowledgements of the five successes. */
export const acknowledged = {
  accepted: success('accepted'),
  duplicate: success('duplicate'),
  ignored: success('ignored'),
  test: success('test'),
  handled: success('handled'),
} as const

/** The newest acknowledgement of each code, by its message: those of a flood are alike, and making one takes 0.6 µs. */
const newest = new Map<RejectionCode, readonly [message: string, Acknowledgement]>()

/** Returns the acknowledgement of a rejected delivery. */
export function rejection(code: RejectionCode, message: string): Acknowledgement {
  const known = newest.get(code)
  if (known?.[0] === message) return known[1]
  const status = rejectionStatus[code]
  const body = JSON.stringify({ status: 'error', code, message })
  const headers: Record<string, string> = headersOf(body)
  if (status === 405) headers.allow = 'POST'
  if (status === 503) headers['retry-after'] = retryAfter
  const acknowledgement = Object.freeze({ outcome: code, status, headers: Object.freeze(headers), body })
  newest.set(code, [message, acknowledgement])
  return acknowledgement
}

/** A WebhookError that a delivery can be rejected with. */
export type RejectionError = WebhookError & { readonly code: RejectionCode }

/** Turns an unforeseen error into `internal`, so that the sender never sees its message. */
export function toRejectionError(error: unknown): RejectionError {
  if (error instanceof WebhookError && Object.hasOwn(rejectionStatus, error.code)) return error as RejectionError
  return new WebhookError('internal', 'the receiver failed', { cause: error }) as RejectionError
}
