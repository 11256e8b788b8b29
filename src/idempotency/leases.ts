import { WebhookError } from '../errors.ts'
import { ChurnMap } from '../internal/churn-map.ts'
import { LeaseClock } from '../internal/lease-clock.ts'
import type { Logger } from '../internal/logger.ts'
import { isPromise, type MaybePromise } from '../internal/maybe-promise.ts'
import { type Timer, unref, within } from '../internal/timers.ts'
import type { Claim, Claims, ClaimsOptions, StoreSteps } from './store.ts'

interface Lease {
  readonly owner: string
  readonly clock: LeaseClock
  /** The next renewal. Each claim has a timer of its own, since Workers end the timers of a request with it. */
  timer?: Timer
  /** Its time (`performance.now()`, ms). */
  dueAt: number
  /** True while a renewal waits for its answer. */
  isPending?: boolean
  /** True once `onEnd` was called, until the lease is renewed. */
  hasExpired?: boolean
  /** Called once the lease has ended and the store has said which owner has the key. */
  settled?: (() => void) | undefined
  /** Set once the key's handlers are done; called once the store has recorded that. */
  recorded?: (() => void) | undefined
}

/**
 * Claims with leases, in a store that other processes share. They are renewed until they are completed or released. A
 * completion that fails is tried again and never becomes a release, which would run the handlers twice. A store that
 * does not answer within a lease counts as unreachable.
 */
export class Leases implements Claims {
  readonly #store: StoreSteps
  readonly #leaseMs: number
  readonly #logger: Logger
  readonly #onLost: (key: string) => void
  readonly #onEnd: ((key: string) => void) | undefined
  readonly #held = new ChurnMap<string, Lease>()
  #owner: string | undefined

  constructor(store: StoreSteps, { leaseMs, logger, onLost, onEnd }: ClaimsOptions) {
    this.#store = store
    this.#leaseMs = leaseMs
    this.#logger = logger
    this.#onLost = onLost
    this.#onEnd = onEnd
  }

  claim(key: string): MaybePromise<Claim> {
    // It is made at the first claim: Workers give out no random numbers at start-up.
    this.#owner ??= crypto.randomUUID()
    const owner = this.#owner
    const sentAt = performance.now()
    try {
      const answer = this.#store.claim(key, owner, this.#leaseMs)
      if (!isPromise(answer)) return this.#hold(key, owner, sentAt, answer)
      return this.#withinLease(answer)
        .then((claim) => this.#hold(key, owner, sentAt, claim))
        .catch((error) => {
          // If the store carries out the claim anyway, the claim is then released.
          answer.then(
            () => this.#release(key, owner),
            () => {},
          )
          return this.#claimFailed(key, owner, error)
        })
    } catch (error) {
      return this.#claimFailed(key, owner, error)
    }
  }

  async #withinLease<T>(answer: MaybePromise<T>): Promise<T> {
    const startedAt = performance.now()
    const late = (): never => {
      throw new Error(`no answer within ${this.#leaseMs} ms`)
    }
    const result = await within(this.#leaseMs, Promise.resolve(answer), late)
    // A process that was paused reads the answer before its timer fires, and the lease may have run out meanwhile.
    return performance.now() - startedAt < this.#leaseMs ? result : late()
  }

  #hold(key: string, owner: string, sentAt: number, claim: Claim): Claim {
    if (claim === 'claimed') {
      this.#drop(key)
      const clock = new LeaseClock(this.#leaseMs, () => this.#expired(key, lease))
      const lease: Lease = { owner, clock, dueAt: sentAt }
      clock.renewed(sentAt)
      this.#held.set(key, lease)
      this.#renewLater(key, lease)
    } else if (claim !== 'in-progress' && claim !== 'done') {
      throw new TypeError('claim has to return claimed, in-progress or done')
    }
    return claim
  }

  #drop(key: string): void {
    const lease = this.#held.get(key)
    if (lease === undefined) return
    this.#held.delete(key)
    clearTimeout(lease.timer)
    lease.clock.stop()
  }

  // The store may have carried out the claim before it failed. Once the claim is released, the sender's retry can be
  // accepted.
  #claimFailed(key: string, owner: string, error: unknown): never {
    void this.#release(key, owner)
    throw new WebhookError('unavailable', 'the idempotency store cannot be reached', { cause: error })
  }

  complete(key: string, recorded: () => void): void {
    const lease = this.#held.get(key)
    if (lease === undefined) return recorded()
    lease.recorded = recorded
    void this.#complete(key, lease)
  }

  #complete(key: string, lease: Lease): MaybePromise<void> {
    try {
      const completed = this.#store.complete(key, lease.owner)
      if (!isPromise(completed)) return this.#completed(key, lease, completed)
      return this.#withinLease(completed).then(
        (answer) => this.#completed(key, lease, answer),
        (error) => this.#warnFailed('complete', key, error),
      )
    } catch (error) {
      this.#warnFailed('complete', key, error)
    }
  }

  #completed(key: string, lease: Lease, completed: boolean): void {
    // Two tries can be pending, and the other one was answered first.
    if (this.#held.get(key) !== lease) return
    this.#drop(key)
    if (!completed)
      this.#logger.warn({ key }, 'the lease was lost before its event was done; the event may be handled twice')
    lease.recorded?.()
  }

  /** If the release fails, the lease runs out by itself. */
  async release(key: string): Promise<void> {
    const lease = this.#held.get(key)
    if (lease === undefined) return
    this.#drop(key)
    await this.#release(key, lease.owner)
  }

  isOver(key: string): boolean {
    const lease = this.#held.get(key)
    if (lease === undefined || !lease.clock.isOver) return false
    this.#expired(key, lease)
    return true
  }

  renewed(key: string): Promise<undefined> | undefined {
    const lease = this.#held.get(key)
    if (lease === undefined || !lease.clock.isOver) return undefined
    return new Promise((resolve) => {
      lease.settled = () => resolve(undefined)
    })
  }

  async #release(key: string, owner: string): Promise<void> {
    // Later claims get a new owner, so that a release that arrives late cannot undo one of them.
    this.#owner = undefined
    try {
      await this.#withinLease(this.#store.release(key, owner))
    } catch (error) {
      this.#warnFailed('release', key, error)
    }
  }

  stop(): void {
    const outcome = 'its event may be handled again if it is delivered again'
    for (const [key, { recorded }] of this.#held) {
      if (recorded) this.#logger.warn({ key }, `the inbox closed before it could complete a claim; ${outcome}`)
      this.#drop(key)
    }
  }

  /** Renewals come every third of a lease, and once more before it ends. */
  #renewLater(key: string, lease: Lease): void {
    const now = performance.now()
    const third = this.#leaseMs / 3
    const { leftMs } = lease.clock
    const isNearExpiry = leftMs > 0 && leftMs < third * 1.5 && lease.recorded === undefined
    // Counted from the claim: after the event loop was blocked, the renewals of many claims must not stay together.
    do lease.dueAt += isNearExpiry ? third / 2 : third
    while (lease.dueAt <= now)
    lease.timer = setTimeout(() => this.#tick(key, lease), lease.dueAt - now)
    unref(lease.timer)
  }

  #tick(key: string, lease: Lease): void {
    this.isOver(key)
    this.#renewLater(key, lease)
    if (lease.isPending) return
    lease.isPending = true
    const answered = lease.recorded ? this.#complete(key, lease) : this.#renew(key, lease)
    void Promise.resolve(answered).finally(() => {
      lease.isPending = false
    })
  }

  #expired(key: string, lease: Lease): void {
    if (lease.recorded !== undefined || lease.hasExpired) return
    lease.hasExpired = true
    const outcome = 'another process may handle its event'
    this.#logger.warn({ key }, `a claim has ended before the idempotency store renewed it; ${outcome}`)
    this.#onEnd?.(key)
  }

  async #renew(key: string, lease: Lease): Promise<void> {
    const sentAt = performance.now()
    try {
      if (await this.#withinLease(this.#store.renew(key, lease.owner, this.#leaseMs))) {
        if (this.#held.get(key) !== lease) return
        lease.clock.renewed(sentAt)
        lease.hasExpired = false
        lease.settled?.()
        return
      }
    } catch (error) {
      return this.#warnFailed('renew', key, error)
    }
    // It may have been completed or released while the store answered.
    if (this.#held.get(key) !== lease || lease.recorded !== undefined) return
    this.#drop(key)
    this.#onLost(key)
    lease.settled?.()
  }

  #warnFailed(step: string, key: string, error: unknown): void {
    this.#logger.warn({ key, err: error }, `the idempotency store could not ${step} a claim`)
  }
}
