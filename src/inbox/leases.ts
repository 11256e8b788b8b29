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
    try {
      const claim = this.#store.claim(key, this.#ownerId(), this.#leaseMs)
      return isPromise(claim) ? this.#answerInTime(key, claim) : this.#keep(key, claim)
    } catch (error) {
      return this.#claimFailed(key, error)
    }
  }

  /** The sender waits for the answer: a store that gives none within a lease cannot be reached. */
  #answerInTime(key: string, claim: Promise<Claim>): Promise<Claim> {
    return new Promise((resolve, reject) => {
      let isLate = false
      const timer = setTimeout(() => {
        isLate = true
        reject(unavailable())
      }, this.#leaseMs)
      Promise.resolve(claim)
        .finally(() => clearTimeout(timer))
        .then((answer) => {
          if (!isLate) resolve(this.#keep(key, answer))
          else if (answer === 'claimed') void this.#giveBack(key)
        })
        .catch((error) => this.#claimFailed(key, error))
        .catch(reject)
    })
  }

  #keep(key: string, claim: Claim): Claim {
    if (claim === 'claimed') {
      this.#held.set(key, undefined)
      this.#beatLater()
    } else if (claim !== 'in-progress' && claim !== 'done') {
      throw new TypeError('an idempotency store answers a claim with claimed, in-progress or done')
    }
    return claim
  }

  // The store may have carried out the claim before it failed: given back, it does not keep the sender's retry waiting.
  #claimFailed(key: string, error: unknown): never {
    void this.#giveBack(key)
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
    } catch (error) {
      this.#failed('release', key, error)
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
    // On Node a heartbeat is no reason to keep the process alive.
    ;(this.#heartbeat as { unref?: () => void }).unref?.()
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
