import { ChurnMap } from '../churn-map.ts'
import { WebhookError } from '../errors.ts'
import type { Claim, IdempotencyStore } from '../idempotency/store.ts'
import type { Logger } from '../logger.ts'
import { isPromise, type MaybePromise } from '../maybe-promise.ts'

/**
 * The claims that this process holds in a store. They are renewed until they are completed or released; a completion
 * that fails is tried again and never becomes a release, which would run the handlers twice.
 */
export class Leases {
  readonly #store: IdempotencyStore
  readonly #leaseMs: number
  readonly #logger: () => Logger
  readonly #onLost: (key: string) => void
  /** By key; with what is to be called once it is recorded, when its handlers are done. */
  readonly #held = new ChurnMap<string, (() => void) | undefined>()
  /** Keys that could not be given back and may still be claimed, until their lease has run out. */
  readonly #doubtful = new Set<string>()
  /** Keys whose heartbeat the store has yet to answer. */
  readonly #beating = new Set<string>()
  #owner: string | undefined
  #heartbeat: ReturnType<typeof setTimeout> | undefined

  constructor(store: IdempotencyStore, leaseMs: number, logger: () => Logger, onLost: (key: string) => void) {
    this.#store = store
    this.#leaseMs = leaseMs
    this.#logger = logger
    this.#onLost = onLost
  }

  // Made at the first claim, since Workers give out no random numbers at start-up.
  #ownerId(): string {
    this.#owner ??= crypto.randomUUID()
    return this.#owner
  }

  /** Claims a key. Rejects with a WebhookError `unavailable` when the store cannot be reached. */
  claim(key: string): MaybePromise<Claim> {
    return this.#doubtful.has(key) ? this.#claimAgain(key) : this.#tryToClaim(key)
  }

  async #claimAgain(key: string): Promise<Claim> {
    await this.#giveBack(key)
    if (this.#doubtful.has(key)) throw unavailable()
    return this.#tryToClaim(key)
  }

  #tryToClaim(key: string): MaybePromise<Claim> {
    try {
      const claim = this.#store.claim(key, this.#ownerId(), this.#leaseMs)
      if (!isPromise(claim)) return this.#keep(key, claim)
      return claim.then(
        (answer) => this.#keep(key, answer),
        (error) => this.#claimFailed(key, error),
      )
    } catch (error) {
      return this.#claimFailed(key, error)
    }
  }

  #keep(key: string, claim: Claim): Claim {
    if (claim === 'claimed') {
      this.#held.set(key, undefined)
      this.#beatLater()
    }
    return claim
  }

  // The store may have carried out the claim before it failed. Left alone, it would make the sender's retry look like
  // a duplicate of an event that nobody handles.
  async #claimFailed(key: string, error: unknown): Promise<never> {
    await this.#giveBack(key)
    throw unavailable(error)
  }

  /**
   * Marks a key as done.
   * @param recorded called once the store has it, or has said that the lease was lost
   */
  complete(key: string, recorded: () => void): void {
    if (!this.#held.has(key)) return recorded()
    this.#held.set(key, recorded)
    void this.#tryToComplete(key)
  }

  #tryToComplete(key: string): MaybePromise<void> {
    try {
      const completed = this.#store.complete(key, this.#ownerId())
      if (!isPromise(completed)) return this.#completed(key, completed)
      return completed.then(
        (answer) => this.#completed(key, answer),
        (error) => this.#failed('complete', key, error),
      )
    } catch (error) {
      this.#failed('complete', key, error)
    }
  }

  #completed(key: string, completed: boolean): void {
    const recorded = this.#held.get(key)
    // Two tries can be under way at once; the other was answered first.
    if (recorded === undefined) return
    this.#held.delete(key)
    if (!completed)
      this.#logger().warn({ key }, 'the lease was lost before its event was done; it may be handled twice')
    recorded()
  }

  /** Gives a claim back, so that any process can take it at once. Where that fails, the lease runs out by itself. */
  async release(key: string): Promise<void> {
    if (this.#held.delete(key)) await this.#giveBack(key)
  }

  async #giveBack(key: string): Promise<void> {
    try {
      await this.#store.release(key, this.#ownerId())
      this.#doubtful.delete(key)
    } catch (error) {
      this.#failed('release', key, error)
      this.#doubtful.add(key)
      unref(setTimeout(() => this.#doubtful.delete(key), this.#leaseMs))
    }
  }

  /** Stops renewing; what is held runs out by itself. */
  stop(): void {
    clearTimeout(this.#heartbeat)
    this.#held.clear()
  }

  #beatLater(): void {
    if (this.#heartbeat !== undefined) return
    this.#heartbeat = setTimeout(() => this.#beat(), this.#leaseMs / 3)
    unref(this.#heartbeat)
  }

  #beat(): void {
    this.#heartbeat = undefined
    for (const [key, recorded] of this.#held) {
      // A key that the store does not answer for must not hold up the others.
      if (this.#beating.has(key)) continue
      this.#beating.add(key)
      const answered = recorded ? this.#tryToComplete(key) : this.#renew(key)
      void Promise.resolve(answered).finally(() => this.#beating.delete(key))
    }
    if (this.#held.size > 0) this.#beatLater()
  }

  async #renew(key: string): Promise<void> {
    try {
      if (await this.#store.renew(key, this.#ownerId(), this.#leaseMs)) return
    } catch (error) {
      return this.#failed('renew', key, error)
    }
    // It may have been completed or released while the store answered.
    if (!this.#held.has(key) || this.#held.get(key) !== undefined) return
    this.#held.delete(key)
    this.#onLost(key)
  }

  #failed(step: string, key: string, error: unknown): void {
    this.#logger().warn({ key, err: error }, `the idempotency store could not ${step} a claim`)
  }
}

const unavailable = (cause?: unknown): WebhookError =>
  new WebhookError('unavailable', 'the idempotency store cannot be reached', { cause })

// On Node none of these timers is a reason to keep the process alive.
const unref = (timer: ReturnType<typeof setTimeout>): void => (timer as { unref?: () => void }).unref?.()
