import { WebhookError } from '../../errors.ts'
import type { Claim, IdempotencyStore } from '../../idempotency/store.ts'
import { ChurnMap } from '../../internal/churn-map.ts'
import type { Logger } from '../../internal/logger.ts'
import { isPromise, type MaybePromise } from '../../internal/maybe-promise.ts'
import { type Timer, unref, within } from '../../internal/timers.ts'

interface Lease {
  readonly owner: string
  /** Set once the key's handlers are done, and called once the store has learnt it. */
  recorded: (() => void) | undefined
}

/**
 * The claims that this process holds in a store. They are renewed until they are completed or released; a completion
 * that fails is tried again and never becomes a release, which would run the handlers twice. A store that gives no
 * answer within a lease counts as one that cannot be reached.
 */
export class Leases {
  readonly #store: IdempotencyStore
  readonly #leaseMs: number
  readonly #logger: () => Logger
  readonly #onLost: (key: string) => void
  readonly #held = new ChurnMap<string, Lease>()
  /** Keys whose heartbeat the store has yet to answer. */
  readonly #beating = new Set<string>()
  #owner: string | undefined
  #heartbeat: Timer | undefined

  constructor(store: IdempotencyStore, leaseMs: number, logger: () => Logger, onLost: (key: string) => void) {
    this.#store = store
    this.#leaseMs = leaseMs
    this.#logger = logger
    this.#onLost = onLost
  }

  /** Claims a key. Rejects with a WebhookError `unavailable` when the store cannot be reached. */
  claim(key: string): MaybePromise<Claim> {
    // Made at the first claim, since Workers give out no random numbers at start-up.
    this.#owner ??= crypto.randomUUID()
    const owner = this.#owner
    try {
      const answer = this.#store.claim(key, owner, this.#leaseMs)
      if (!isPromise(answer)) return this.#keep(key, owner, answer)
      return this.#inTime(answer)
        .then((claim) => this.#keep(key, owner, claim))
        .catch((error) => {
          // If it is carried out after all, it is given back then.
          answer.then(
            () => this.#giveBack(key, owner),
            () => {},
          )
          return this.#claimFailed(key, owner, error)
        })
    } catch (error) {
      return this.#claimFailed(key, owner, error)
    }
  }

  #inTime<T>(answer: MaybePromise<T>): Promise<T> {
    return within(this.#leaseMs, Promise.resolve(answer), () => {
      throw new Error(`no answer within ${this.#leaseMs} ms`)
    })
  }

  #keep(key: string, owner: string, claim: Claim): Claim {
    if (claim === 'claimed') {
      this.#held.set(key, { owner, recorded: undefined })
      this.#beatLater()
    } else if (claim !== 'in-progress' && claim !== 'done') {
      throw new TypeError('an idempotency store answers a claim with claimed, in-progress or done')
    }
    return claim
  }

  // The store may have carried out the claim before it failed: given back, it does not keep the sender's retry waiting.
  #claimFailed(key: string, owner: string, error: unknown): never {
    void this.#giveBack(key, owner)
    throw new WebhookError('unavailable', 'the idempotency store cannot be reached', { cause: error })
  }

  /**
   * Marks a key as done.
   * @param recorded called once the store has it, or has said that the lease was lost
   */
  complete(key: string, recorded: () => void): void {
    const lease = this.#held.get(key)
    if (lease === undefined) return recorded()
    lease.recorded = recorded
    void this.#tryToComplete(key, lease)
  }

  #tryToComplete(key: string, lease: Lease): MaybePromise<void> {
    try {
      const completed = this.#store.complete(key, lease.owner)
      if (!isPromise(completed)) return this.#completed(key, lease, completed)
      return this.#inTime(completed).then(
        (answer) => this.#completed(key, lease, answer),
        (error) => this.#failed('complete', key, error),
      )
    } catch (error) {
      this.#failed('complete', key, error)
    }
  }

  #completed(key: string, lease: Lease, completed: boolean): void {
    // Two tries can be under way at once; the other was answered first.
    if (this.#held.get(key) !== lease) return
    this.#held.delete(key)
    if (!completed)
      this.#logger().warn({ key }, 'the lease was lost before its event was done; it may be handled twice')
    lease.recorded?.()
  }

  /** Gives a claim back, so that any process can take it at once. Where that fails, the lease runs out by itself. */
  async release(key: string): Promise<void> {
    const lease = this.#held.get(key)
    if (lease === undefined) return
    this.#held.delete(key)
    await this.#giveBack(key, lease.owner)
  }

  async #giveBack(key: string, owner: string): Promise<void> {
    // From now on claims have another owner: one that comes late must not undo a newer claim of this key.
    this.#owner = undefined
    try {
      await this.#inTime(this.#store.release(key, owner))
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
    unref(this.#heartbeat)
  }

  #beat(): void {
    this.#heartbeat = undefined
    for (const [key, lease] of this.#held) {
      // A key that the store does not answer for must not hold up the others.
      if (this.#beating.has(key)) continue
      this.#beating.add(key)
      const answered = lease.recorded ? this.#tryToComplete(key, lease) : this.#renew(key, lease)
      void Promise.resolve(answered).finally(() => this.#beating.delete(key))
    }
    if (this.#held.size > 0) this.#beatLater()
  }

  async #renew(key: string, lease: Lease): Promise<void> {
    try {
      if (await this.#inTime(this.#store.renew(key, lease.owner, this.#leaseMs))) return
    } catch (error) {
      return this.#failed('renew', key, error)
    }
    // It may have been completed or released while the store answered.
    if (this.#held.get(key) !== lease || lease.recorded !== undefined) return
    this.#held.delete(key)
    this.#onLost(key)
  }

  #failed(step: string, key: string, error: unknown): void {
    this.#logger().warn({ key, err: error }, `the idempotency store could not ${step} a claim`)
  }
}
