import { WebhookError } from '../errors.ts'
import { ChurnMap } from '../internal/churn-map.ts'
import { LeaseClock } from '../internal/lease-clock.ts'
import { type Logger, throttled } from '../internal/logger.ts'
import { isPromise, type MaybePromise } from '../internal/maybe-promise.ts'
import { crypto } from '../internal/realm.ts'
import { type Timer, unref, within } from '../internal/timers.ts'
import type { Claim, Claims, ClaimsOptions, StoreSteps } from './store.ts'

interface Lease {
  readonly owner: string
  readonly clock: LeaseClock
  /** The next renewal. A timer per claim, because Workers drop a request's timers when it ends. */
  timer?: Timer
  /** When `timer` fires (`performance.now()`, ms). */
  dueAt: number
  /** True while a renewal or completion is in flight. */
  isPending?: boolean
  /** True from the `onEnd` call to the next renewal. */
  hasExpired?: boolean
  /** Resolves the promise of {@link Leases.untilRenewed}. */
  settled?: (() => void) | undefined
  /** Set once the key's handlers are done; called once the store has recorded it. */
  recorded?: (() => void) | undefined
}

/**
 * Claims with leases, in a shared store, renewed until completed or released. A failed completion is retried and never
 * turns into a release, which would run the handlers twice. A store that takes longer than a lease is unreachable.
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
    // Lazy, because Workers allow no randomness at start-up.
    this.#owner ??= crypto.randomUUID()
    const owner = this.#owner
    const sentAt = performance.now()
    try {
      const answer = this.#store.claim(key, owner, this.#leaseMs)
      if (!isPromise(answer)) return this.#hold(key, owner, sentAt, answer)
      return withinLease(this.#leaseMs, answer)
        .then((claim) => this.#hold(key, owner, sentAt, claim))
        .catch((error) => {
          // The store may still apply this claim; if it does, release it.
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

  #hold(key: string, owner: string, sentAt: number, claim: Claim): Claim {
    if (claim === 'claimed') {
      this.#drop(key)
      const clock = new LeaseClock(this.#leaseMs, () => this.#expired(key, lease))
      const lease: Lease = { owner, clock, dueAt: sentAt }
      clock.renewed(sentAt)
      this.#held.set(key, lease)
      this.#renewLater(key, lease)
    } else if (claim !== 'in-progress' && claim !== 'done') {
      throw new TypeError('claim must return claimed, in-progress or done')
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

  // The store may have applied the claim before it failed. Release it, or the sender's retry finds the key taken.
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
      return withinLease(this.#leaseMs, completed).then(
        (answer) => this.#completed(key, lease, answer),
        (error) => this.#warnFailed('complete', key, error),
      )
    } catch (error) {
      this.#warnFailed('complete', key, error)
    }
  }

  #completed(key: string, lease: Lease, completed: boolean): void {
    // Two completions can be in flight; the other won.
    if (this.#held.get(key) !== lease) return
    this.#drop(key)
    if (!completed)
      throttled(this.#logger).warn(
        { key },
        'the lease was lost before the event was done; the event may be handled twice',
      )
    lease.recorded?.()
  }

  /** If the release fails, the lease still expires. */
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

  untilRenewed(key: string): Promise<undefined> | undefined {
    const lease = this.#held.get(key)
    if (lease === undefined || !lease.clock.isOver) return undefined
    return new Promise((resolve) => {
      lease.settled = () => resolve(undefined)
    })
  }

  async #release(key: string, owner: string): Promise<void> {
    // New owner for later claims, so a late release can't undo them.
    this.#owner = undefined
    try {
      await withinLease(this.#leaseMs, this.#store.release(key, owner))
    } catch (error) {
      this.#warnFailed('release', key, error)
    }
  }

  stop(): void {
    const outcome = 'if its event is delivered again, its handlers may run again'
    for (const [key, { recorded }] of this.#held) {
      if (recorded) this.#logger.warn({ key }, `the inbox closed before it could complete a claim; ${outcome}`)
      this.#drop(key)
    }
  }

  /** Every third of a lease, and every sixth once it is near expiry. */
  #renewLater(key: string, lease: Lease): void {
    const now = performance.now()
    const third = this.#leaseMs / 3
    const { leftMs } = lease.clock
    const isNearExpiry = leftMs > 0 && leftMs < third * 1.5 && lease.recorded === undefined
    // Counted from the claim, so renewals bunched by a blocked event loop spread out again.
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
    throttled(this.#logger).warn({ key }, `a claim expired before the idempotency store renewed it; ${outcome}`)
    this.#onEnd?.(key)
  }

  async #renew(key: string, lease: Lease): Promise<void> {
    const sentAt = performance.now()
    try {
      if (await withinLease(this.#leaseMs, this.#store.renew(key, lease.owner, this.#leaseMs))) {
        if (this.#held.get(key) !== lease) return
        lease.clock.renewed(sentAt)
        lease.hasExpired = false
        lease.settled?.()
        return
      }
    } catch (error) {
      return this.#warnFailed('renew', key, error)
    }
    // Completed or released meanwhile.
    if (this.#held.get(key) !== lease || lease.recorded !== undefined) return
    this.#drop(key)
    this.#onLost(key)
    lease.settled?.()
  }

  #warnFailed(step: string, key: string, error: unknown): void {
    throttled(this.#logger).warn({ key, err: error }, `the idempotency store could not ${step} a claim`)
  }
}

async function withinLease<T>(leaseMs: number, answer: MaybePromise<T>): Promise<T> {
  const startedAt = performance.now()
  const late = (): never => {
    throw new Error(`no answer within ${leaseMs} ms`)
  }
  const result = await within(leaseMs, Promise.resolve(answer), late)
  // A suspended process sees the answer before the timer; the lease may be over.
  return performance.now() - startedAt < leaseMs ? result : late()
}
