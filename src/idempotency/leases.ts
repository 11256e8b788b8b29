import { WebhookError } from '../errors.ts'
import { ChurnMap } from '../internal/churn-map.ts'
import type { Logger } from '../internal/logger.ts'
import { isPromise, type MaybePromise } from '../internal/maybe-promise.ts'
import { requestLifetimes } from '../internal/requests.ts'
import { later, type Timer, unref, within } from '../internal/timers.ts'
import type { Claim, Claims, ClaimsOptions, StoreSteps } from './store.ts'

/**
 * The number of claims that are renewed before the event loop gets a turn: renewing ten thousand together would block
 * it for 100 ms.
 */
const renewedPerTurn = 256

interface Lease {
  readonly owner: string
  /** The store keeps it until then at least, in ms of `performance.now`. */
  until: number
  /** Set from the time at which its end comes near until it is renewed. */
  end?: Timer | undefined
  /** Called once the lease has ended and the store has said which owner has the key. */
  settled?: (() => void) | undefined
  /** Set once the key's handlers are done; called once the store has recorded that. */
  recorded: (() => void) | undefined
  /** The timer of its next renewal, on Workers. */
  timer?: Timer
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
  /** The keys whose renewal the store has not answered yet. */
  readonly #renewing = new Set<string>()
  /** `undefined` if requests do not end work. A lease that is not renewed in time has lost its request. */
  readonly #requests = requestLifetimes()
  #owner: string | undefined
  #heartbeat: Timer | undefined

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
    const until = this.#leaseFromNow()
    try {
      const answer = this.#store.claim(key, owner, this.#leaseMs)
      if (!isPromise(answer)) return this.#keep(key, owner, until, answer)
      return this.#inTime(answer)
        .then((claim) => this.#keep(key, owner, until, claim))
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

  async #inTime<T>(answer: MaybePromise<T>): Promise<T> {
    const startedAt = performance.now()
    const late = (): never => {
      throw new Error(`no answer within ${this.#leaseMs} ms`)
    }
    const inTime = await within(this.#leaseMs, Promise.resolve(answer), late)
    // A process that was paused reads the answer before its timer fires, and the lease may have run out meanwhile.
    return performance.now() - startedAt < this.#leaseMs ? inTime : late()
  }

  /** The end of a lease that the store is asked for now: the store counts from a later moment. */
  #leaseFromNow(): number {
    return performance.now() + this.#leaseMs
  }

  #keep(key: string, owner: string, until: number, claim: Claim): Claim {
    if (claim === 'claimed') {
      const lease: Lease = { owner, until, recorded: undefined }
      this.#held.set(key, lease)
      if (this.#requests) this.#renewHere(key, lease)
      else this.#renewLater()
    } else if (claim !== 'in-progress' && claim !== 'done') {
      throw new TypeError('claim has to return claimed, in-progress or done')
    }
    return claim
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
    // Two tries can be pending, and the other one was answered first.
    if (this.#held.get(key) !== lease) return
    this.#held.delete(key)
    if (!completed)
      this.#logger.warn({ key }, 'the lease was lost before its event was done; the event may be handled twice')
    lease.recorded?.()
  }

  /** If the release fails, the lease runs out by itself. */
  async release(key: string): Promise<void> {
    const lease = this.#held.get(key)
    if (lease === undefined) return
    this.#held.delete(key)
    await this.#release(key, lease.owner)
  }

  renewed(key: string): Promise<undefined> | undefined {
    const lease = this.#held.get(key)
    if (lease === undefined) return undefined
    if (this.#requests === undefined) return this.#known(lease)
    if (this.#requests.isOver(lease)) return this.#beat(key, lease)
    this.#renewHere(key, lease)
    return undefined
  }

  #known(lease: Lease): Promise<undefined> | undefined {
    if (performance.now() < lease.until) return undefined
    return new Promise((resolve) => {
      lease.settled = () => resolve(undefined)
    })
  }

  takeOver(): void {
    if (this.#requests === undefined) return
    for (const [key, lease] of this.#held)
      if (lease.recorded !== undefined && this.#requests.isOver(lease)) void this.#beat(key, lease)
  }

  /** Renews a claim in the current request from now on: on Workers, the timer of another may never fire. */
  #renewHere(key: string, lease: Lease): void {
    clearTimeout(lease.timer)
    const dueInMs = this.#leaseMs / 3
    this.#requests?.begin(lease, dueInMs)
    lease.timer = setTimeout(() => this.#beat(key, lease), dueInMs)
  }

  async #beat(key: string, lease: Lease): Promise<undefined> {
    if (this.#held.get(key) !== lease) return
    this.#renewHere(key, lease)
    this.#watchEnd(key, lease)
    await (lease.recorded ? this.#tryToComplete(key, lease) : this.#renew(key, lease))
  }

  async #release(key: string, owner: string): Promise<void> {
    // Later claims get a new owner, so that a release that arrives late cannot undo one of them.
    this.#owner = undefined
    try {
      await this.#inTime(this.#store.release(key, owner))
    } catch (error) {
      this.#failed('release', key, error)
    }
  }

  stop(): void {
    clearTimeout(this.#heartbeat)
    const outcome = 'its event may be handled again if it is delivered again'
    for (const [key, { recorded }] of this.#held)
      if (recorded) this.#logger.warn({ key }, `the inbox closed before it could complete a claim; ${outcome}`)
    this.#held.clear()
  }

  #renewLater(): void {
    if (this.#heartbeat !== undefined) return
    this.#heartbeat = setTimeout(() => this.#renewAll(this.#held[Symbol.iterator]()), this.#leaseMs / 3)
    unref(this.#heartbeat)
  }

  #renewAll(claims: Iterator<[string, Lease]>): void {
    for (let left = renewedPerTurn; left > 0; left--) {
      const { done, value } = claims.next()
      if (done) {
        this.#heartbeat = undefined
        if (this.#held.size > 0) this.#renewLater()
        return
      }
      this.#renewOne(...value)
    }
    later(() => this.#renewAll(claims))
  }

  #renewOne(key: string, lease: Lease): void {
    this.#watchEnd(key, lease)
    // A slow answer for one key must not hold up the others.
    if (this.#renewing.has(key)) return
    this.#renewing.add(key)
    const answered = lease.recorded ? this.#tryToComplete(key, lease) : this.#renew(key, lease)
    void Promise.resolve(answered).finally(() => this.#renewing.delete(key))
  }

  /** Called at each renewal: a lease that ends before the next one was not renewed at the last ones. */
  #watchEnd(key: string, lease: Lease): void {
    const leftMs = lease.until - performance.now()
    if (lease.end !== undefined || lease.recorded !== undefined || leftMs > this.#leaseMs / 3) return
    // A process that was paused may find that it still has the lease.
    const halfMs = (leftMs > 0 ? leftMs : this.#leaseMs / 3) / 2
    lease.end = setTimeout(() => {
      lease.end = setTimeout(() => this.#ended(key, lease), halfMs)
      unref(lease.end)
      if (this.#held.get(key) === lease) this.#renewOne(key, lease)
    }, halfMs)
    unref(lease.end)
  }

  #ended(key: string, lease: Lease): void {
    if (this.#held.get(key) !== lease || lease.recorded !== undefined) return
    const outcome = 'another process may handle its event'
    this.#logger.warn({ key }, `a claim has ended, since the idempotency store cannot be reached; ${outcome}`)
    this.#onEnd?.(key)
  }

  async #renew(key: string, lease: Lease): Promise<void> {
    const until = this.#leaseFromNow()
    try {
      if (await this.#inTime(this.#store.renew(key, lease.owner, this.#leaseMs))) {
        lease.until = until
        clearTimeout(lease.end)
        lease.end = undefined
        lease.settled?.()
        return
      }
    } catch (error) {
      return this.#failed('renew', key, error)
    }
    // It may have been completed or released while the store answered.
    if (this.#held.get(key) !== lease || lease.recorded !== undefined) return
    this.#held.delete(key)
    this.#onLost(key)
    lease.settled?.()
  }

  #failed(step: string, key: string, error: unknown): void {
    this.#logger.warn({ key, err: error }, `the idempotency store could not ${step} a claim`)
  }
}
