import type { Logger } from '../internal/logger.ts'
import type { MaybePromise } from '../internal/maybe-promise.ts'

/** The answer to a claim. */
export type Claim = 'claimed' | 'in-progress' | 'done'

/**
 * The steps of an idempotency store, each of them atomic. An outage throws or rejects. It never looks like "not seen",
 * which would run handlers twice. `testing` has the contract suite that the steps of every store pass.
 */
export interface StoreSteps {
  /** `true` if keys are remembered in this process only. */
  readonly isLocal?: boolean
  /**
   * Claims a key for `leaseMs` milliseconds. `in-progress` while any owner's lease lasts, the caller's own included;
   * `done` once the key was completed. When a lease has run out, the key can be claimed again.
   */
  claim(key: string, owner: string, leaseMs: number): MaybePromise<Claim>
  /**
   * Makes a lease last `leaseMs` from now. `false`: the lease is lost, since another owner has claimed or finished the
   * key.
   */
  renew(key: string, owner: string, leaseMs: number): MaybePromise<boolean>
  /**
   * Marks a key as done. `false`: another owner has claimed or finished it. `true` again for the owner that finished
   * it, since a completion is tried again when its answer was lost.
   */
  complete(key: string, owner: string): MaybePromise<boolean>
  /** Releases a claim, so that the key can be claimed again immediately. `false`: `owner` did not hold it. */
  release(key: string, owner: string): MaybePromise<boolean>
  /**
   * Frees the resources that the store opened. The code that made the store calls it: an inbox never closes its store.
   */
  close?(): MaybePromise<void>
}

/** The options of {@link IdempotencyStore.claims}. */
export interface ClaimsOptions {
  /** The time that a claim lasts after the process stopped renewing it, in ms. */
  readonly leaseMs: number
  /** Gets the warnings about a store that fails. */
  readonly logger: Logger
  /** Called with a key whose lease was lost to another process. */
  onLost(key: string): void
  /**
   * Called with a key whose lease has ended before the store renewed it. Another process may have it from now on. The
   * claim is still renewed: {@link Claims.renewed} resolves once the store has said which owner has it.
   */
  onEnd?(key: string): void
}

/** Remembers which event keys were claimed and finished. `defineStore` makes one from its steps. */
export interface IdempotencyStore extends StoreSteps {
  /** Makes the claims of one inbox. */
  claims(options: ClaimsOptions): Claims
}

/**
 * Adds claims to the steps of a store. A copy made by `{ ...store }` loses them: if it replaced a step, the claims
 * would still use the original.
 */
export const withClaims = (steps: StoreSteps, claims: IdempotencyStore['claims']): IdempotencyStore =>
  Object.defineProperty({ ...steps } as IdempotencyStore, 'claims', { value: claims })

/** The claims of one inbox in a store. They last until they are completed or released. */
export interface Claims {
  /** Claims a key. Throws or rejects with a WebhookError `unavailable` when the store cannot be reached. */
  claim(key: string): MaybePromise<Claim>
  /**
   * Marks a key as done.
   * @param recorded called once the store has recorded it, or has said that the lease was lost
   */
  complete(key: string, recorded: () => void): void
  /** Releases a claim, so that the key can be claimed again immediately. */
  release(key: string): Promise<void>
  /**
   * Returns true from the end of the claim's lease by the clock of this process until it is renewed, and makes sure
   * that `onEnd` was called: a process that was suspended may ask before a timer fires.
   */
  isOver?(key: string): boolean
  /** Called before each attempt at an event. Resolves once the claim is renewed, or lost, if its lease has ended. */
  renewed?(key: string): Promise<undefined> | undefined
  /** Stops renewing the claims, so that each runs out after the time of a lease. */
  stop(): void
}
