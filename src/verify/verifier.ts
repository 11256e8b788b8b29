import type { DeliveryHeaders } from '../delivery.ts'
import type { MaybePromise } from '../internal/maybe-promise.ts'

/** The part of a delivery that a verifier sees. */
export interface SignedDelivery {
  /** The target as received: path and query, or an absolute URL. */
  readonly url: string
  /** The header fields as received. */
  readonly headers: DeliveryHeaders
  /** The exact bytes; empty for a verifier that needs none, which is asked before the body is read. */
  readonly body: Uint8Array
}

/** The decision of a verifier. The reason is for logs and hooks, never for the sender. */
export type Verification =
  | {
      readonly verified: true
      /** An event id that the verification covers. It becomes the event key. */
      readonly eventId?: string
      /** The name of the sender, such as a tenant. Handlers get it as `context.principal`. */
      readonly principal?: string
    }
  | {
      readonly verified: false
      readonly reason: string
      /** `true` if it cannot decide now. The delivery is answered 503, and not 401, so that it is sent again. */
      readonly unavailable?: true
      /** The error that kept it from deciding, for logs and hooks. */
      readonly error?: unknown
    }

/** Decides whether a delivery comes from the sender. When it throws or rejects, the delivery is not verified. */
export interface Verifier {
  /** The verifier's name in logs and error messages. */
  readonly name: string
  /** `true` if it needs the body's exact bytes. It then cannot verify a body that a parser has consumed. */
  readonly needsBytes: boolean
  /** Decides whether one delivery comes from the sender, within the receiver's `bodyTimeoutMs`. */
  verify(delivery: SignedDelivery): MaybePromise<Verification>
}

/** The delivery comes from the sender. */
export const verified = Object.freeze({ verified: true }) satisfies Verification

/** The delivery may come from anyone. */
export const notVerified = (reason: string): Verification => ({ verified: false, reason })
