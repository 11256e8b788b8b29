import { WebhookError, type WebhookErrorCode } from './errors.ts'
import type { MaybePromise } from './internal/maybe-promise.ts'

/** Header lookup as the web's `Headers` does it: any case; several fields of one name are joined with `, `. */
export interface DeliveryHeaders {
  get(name: string): string | null
}

/**
 * Reads a body that nobody has read yet and stops at `limit` bytes, whatever Content-Length says. It answers
 * `too_large` past the limit, and `incomplete` when the sender went away before the end.
 */
export type BodyReader = (limit: number) => MaybePromise<Uint8Array | 'too_large' | 'incomplete'>

/** What another parser made of the body. Its bytes are gone, so only a verifier that needs none can accept it. */
export interface ParsedBody {
  /** The parsed JSON; `undefined` when the body was read and nothing of it was left. */
  readonly parsed: unknown
}

/** One HTTP POST made by the sender, as an adapter hands it over. */
export interface Delivery {
  readonly method: string
  /** The target as received: path and query, or an absolute URL. */
  readonly url: string
  readonly headers: DeliveryHeaders
  readonly body: Uint8Array | BodyReader | ParsedBody
  /** Keeps the runtime alive until the event has been handled, where the platform needs to be asked to. */
  readonly waitUntil?: ((promise: Promise<unknown>) => void) | undefined
}

/** Why a delivery is answered with anything else than success. */
export type RefusalCode = Exclude<WebhookErrorCode, 'invalid_option' | 'timeout' | 'lease_lost'>

/** What became of a delivery. */
export type Outcome = 'accepted' | 'duplicate' | 'ignored' | 'handled' | RefusalCode

/** The HTTP answer to a delivery. */
export interface Acknowledgement {
  readonly outcome: Outcome
  readonly status: number
  /** Names in lower case; Content-Length is among them. */
  readonly headers: Readonly<Record<string, string>>
  /** JSON text. */
  readonly body: string
}

const refusalStatus: Record<RefusalCode, number> = {
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

/** Seconds; the service's documented pause between the attempts of a delivery. */
const retryAfter = '3'

const encoder = new TextEncoder()

const headersOf = (body: string) => ({
  'content-type': 'application/json',
  'content-length': String(encoder.encode(body).byteLength),
})

// Exactly 200: the service's test delivery counts no other status as success.
function success(outcome: 'accepted' | 'duplicate' | 'ignored' | 'handled'): Acknowledgement {
  const body = JSON.stringify({ status: outcome })
  return Object.freeze({ outcome, status: 200, headers: Object.freeze(headersOf(body)), body })
}

/** The acknowledgements of success. */
export const acknowledged = {
  accepted: success('accepted'),
  duplicate: success('duplicate'),
  ignored: success('ignored'),
  handled: success('handled'),
} as const

/** The acknowledgement of a delivery that was not taken. */
export function refusal(code: RefusalCode, message: string): Acknowledgement {
  const status = refusalStatus[code]
  const body = JSON.stringify({ status: 'error', code, message })
  const headers: Record<string, string> = headersOf(body)
  if (status === 405) headers.allow = 'POST'
  if (status === 503) headers['retry-after'] = retryAfter
  return { outcome: code, status, headers, body }
}

/** A WebhookError that a delivery can be answered with. */
export type Refusal = WebhookError & { readonly code: RefusalCode }

/** The error as a refusal; what nobody foresaw becomes `internal`, and nothing of its text is told to the sender. */
export function toRefusal(error: unknown): Refusal {
  if (error instanceof WebhookError && Object.hasOwn(refusalStatus, error.code)) return error as Refusal
  return new WebhookError('internal', 'the receiver failed', { cause: error }) as Refusal
}
