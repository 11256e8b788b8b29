import type { Logger } from '../internal/logger.ts'
import type { MaybePromise } from '../internal/maybe-promise.ts'

/** `done`: the key is finished. */
export type Claim = 'claimed' | 'in-progress' | 'done'

/**
 * The steps of an idempotency store, each atomic. An outage throws or rejects; it never looks like "not seen", which
 * would run handlers twice. `testing` has the contract suite.
 */
export interface StoreSteps {
  /** `true` if keys live in this process only. */
  readonly isLocal?: boolean
  /** `in-progress` until any lease on the key expires, the caller's own included; `done` once it was completed. */
  claim(key: string, owner: string, leaseMs: number): MaybePromise<Claim>
  /** Extends a lease to `leaseMs` from now. `false`: lost, another owner has claimed or finished the key. */
  renew(key: string, owner: string, leaseMs: number): MaybePromise<boolean>
  /** Marks a key as done. `false`: another owner claimed or finished it. Idempotent for its owner, who may retry. */
  complete(key: string, owner: string): MaybePromise<boolean>
  /** Gives a key back for claiming. `false`: `owner` did not hold it. */
  release(key: string, owner: string): MaybePromise<boolean>
  /** Frees what the store opened. Called by whoever made the store; an inbox never closes it. */
  close?(): MaybePromise<void>
}

/** The options of {@link IdempotencyStore.claims}. */
export interface ClaimsOptions {
  /** Lease of a claim (ms): how long it outlives the last renewal. */
  readonly leaseMs: number
  /** Gets a warning when the store fails. */
  readonly logger: Logger
  /** Called when a key's lease was lost to another process. */
  onLost(key: string): void
  /** Called when a lease expires unrenewed: another process may claim the key. Renewals go on. */
  onEnd?(key: string): void
}

/** Remembers which event keys were claimed and finished. Made by `defineStore`. */
export interface IdempotencyStore extends StoreSteps {
  /** Opens the claims of one inbox. */
  claims(options: ClaimsOptions): Claims
}

/** Adds claims to a store's steps. Not enumerable: in `{ ...store, claim }` they would bypass the replaced step. */
export const withClaims = (steps: StoreSteps, claims: IdempotencyStore['claims']): IdempotencyStore =>
  Object.defineProperty({ ...steps } as IdempotencyStore, 'claims', { value: claims })

/** The claims of one inbox, held until completed or released. */
export interface Claims {
  /** Claims a key. Throws or rejects with a WebhookError `unavailable` if the store can't be reached. */
  claim(key: string): MaybePromise<Claim>
  /** Marks a key as done. Calls `recorded` once the store has recorded it, or the lease turned out lost. */
  complete(key: string, recorded: () => void): void
  /** Gives a key back for claiming. */
  release(key: string): Promise<void>
  /** True while the lease is expired by this process's clock. Calls `onEnd` if a suspended process missed the timer. */
  isOver?(key: string): boolean
  /** Called before each attempt. If the lease is expired, resolves once it is renewed or lost. */
  untilRenewed?(key: string): Promise<undefined> | undefined
  /** Stops renewing; each claim expires within a lease. */
  stop(): void
}
