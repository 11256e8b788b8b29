import type { WebhookErrorCode } from '../errors.ts'
import type { MaybePromise } from '../internal/maybe-promise.ts'

/** Case-insensitive header lookup, like `Headers`: repeated fields are joined with `, `. */
export interface DeliveryHeaders {
  /** Returns a field, or `null` if the request lacks it. */
  get(name: string): string | null
}

/**
 * Reads the body, at most `limit` bytes, without trusting Content-Length. Returns `too_large` past the limit and
 * `incomplete` if the sender disconnects.
 */
export type BodyReader = (limit: number) => MaybePromise<Uint8Array | 'too_large' | 'incomplete'>

/** A body that another parser has consumed. The bytes are gone, so no verifier that needs them can accept it. */
export interface ParsedBody {
  /** The parsed JSON; `undefined` if nothing is left of the body. */
  readonly parsed: unknown
  /** How to leave the body unread in this framework, for the log. */
  readonly fix?: string | undefined
}

/** One HTTP request, as an adapter passes it to the receiver. */
export interface Delivery {
  /** Upper case, such as `POST`. */
  readonly method: string
  /** Path and query, or an absolute URL. */
  readonly url: string
  readonly headers: DeliveryHeaders
  /** The bytes, a function that reads them, or what another parser made of them. */
  readonly body: Uint8Array | BodyReader | ParsedBody
  /** Keeps the runtime alive until the event is handled, on platforms that freeze after the response. */
  readonly waitUntil?: ((promise: Promise<unknown>) => void) | undefined
}

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
