import type { MaybePromise } from '../internal/maybe-promise.ts'
import type { DeliveryHeaders } from '../receiver/delivery.ts'

/** What a verifier sees of a delivery. */
export interface SignedDelivery {
  /** The target as received: path and query, or an absolute URL. */
  readonly url: string
  readonly headers: DeliveryHeaders
  /** The raw bytes. Empty for a verifier without `needsBytes`, which runs before the body is read. */
  readonly body: Uint8Array
}

/** A verifier's decision. The reason is for logs and hooks, never for the sender. */
export type Verification =
  | {
      readonly verified: true
      /** An event id covered by the verification. It becomes the event key. */
      readonly eventId?: string
      /** The sender's name, such as a tenant. Handlers get it as `context.principal`. */
      readonly principal?: string
    }
  | {
      readonly verified: false
      readonly reason: string
      /** `true` if the verifier can't decide right now: answered 503 instead of 401, so the sender retries. */
      readonly unavailable?: true
      /** The error behind it, for logs and hooks. */
      readonly error?: unknown
    }

/** Decides whether a delivery comes from the sender. A verifier that throws or rejects has not verified it. */
export interface Verifier {
  /** The verifier's name in logs and error messages. */
  readonly name: string
  /** `true` if it needs the raw body. It then can't verify a delivery whose body a parser has consumed. */
  readonly needsBytes: boolean
  /** Verifies one delivery, within the receiver's `bodyTimeoutMs`. */
  verify(delivery: SignedDelivery): MaybePromise<Verification>
  /** Removes the token from a URL, for what is stored or made an event key. Absent if the URL holds none. */
  readonly withoutToken?: ((url: string) => string) | undefined
}

/** Accepts the delivery. */
export const verified = Object.freeze({ verified: true }) satisfies Verification

/** Rejects the delivery. */
export const notVerified = (reason: string): Verification => ({ verified: false, reason })
