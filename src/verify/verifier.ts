import type { DeliveryHeaders } from '../delivery.ts'
import type { MaybePromise } from '../internal/maybe-promise.ts'

/** What a verifier looks at. */
export interface SignedDelivery {
  readonly url: string
  readonly headers: DeliveryHeaders
  /** The exact bytes; empty when another parser consumed them and the verifier needs none. */
  readonly body: Uint8Array
}

/** What a verifier decided. The reason is for logs and hooks, never for the sender. */
export type Verification =
  | {
      readonly verified: true
      /** An id of the event that the verification covers; it becomes the event key. */
      readonly eventId?: string
    }
  | { readonly verified: false; readonly reason: string }

/** Decides whether a delivery comes from the sender. One that throws or rejects refuses. */
export interface Verifier {
  readonly name: string
  /** Whether it covers the body's exact bytes, so that a body some parser consumed cannot be verified. */
  readonly needsBytes: boolean
  verify(delivery: SignedDelivery): MaybePromise<Verification>
}

/** The delivery comes from the sender. */
export const verified: Verification = Object.freeze({ verified: true })

/** The delivery may come from anyone. */
export const refused = (reason: string): Verification => ({ verified: false, reason })
