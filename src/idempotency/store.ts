import type { MaybePromise } from '../internal/maybe-promise.ts'

/** The answer to a claim. */
export type Claim = 'claimed' | 'in-progress' | 'done'

/**
 * Remembers which event keys were claimed and finished. Each method is one atomic step. An outage throws or rejects;
 * it never looks like "not seen", since that would run handlers twice.
 *
 * `testing` holds the contract suite that every store passes.
 */
export interface IdempotencyStore {
  /**
   * Claims a key for `leaseMs` milliseconds. `in-progress` while any owner's lease lasts (the caller's own too),
   * `done` once the key was completed. When a lease has run out, the key can be claimed again.
   */
  claim(key: string, owner: string, leaseMs: number): MaybePromise<Claim>
  /** Lets a lease last `leaseMs` from now. `false`: another owner holds or has finished the key, the lease is lost. */
  renew(key: string, owner: string, leaseMs: number): MaybePromise<boolean>
  /**
   * Marks a key as done. `false`: another owner holds or has finished it. `true` again for the owner that finished it,
   * since a completion whose answer was lost is tried again.
   */
  complete(key: string, owner: string): MaybePromise<boolean>
  /** Gives a claim back, so that the key can be claimed again at once. `false`: `owner` did not hold it. */
  release(key: string, owner: string): MaybePromise<boolean>
  /** Frees what the store opened itself. For whoever made the store: an inbox never closes it. */
  close?(): MaybePromise<void>
}
