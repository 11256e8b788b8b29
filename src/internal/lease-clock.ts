import { maxWaitMs, type Timer, unref } from './timers.ts'

/**
 * A lease by this process's monotonic clock. The store counts from the moment it gets a renewal, so from *sending* one
 * on, `leaseMs` is a lower bound, whether or not the store can be reached meanwhile.
 */
export class LeaseClock {
  readonly #leaseMs: number
  readonly #onEnd: () => void
  /** `performance.now()`, ms. */
  #until = Number.NEGATIVE_INFINITY
  #timer: Timer | undefined

  /** @param onEnd called once a lease runs out; a suspended process may check {@link isOver} before it is called */
  constructor(leaseMs: number, onEnd: () => void) {
    this.#leaseMs = leaseMs
    this.#onEnd = onEnd
  }

  /** True before the first renewal, and from the end of the lease to the next renewal. */
  get isOver(): boolean {
    return this.leftMs <= 0
  }

  /** Time to its end (ms), below 0 once it is over. */
  get leftMs(): number {
    return this.#until - performance.now()
  }

  /** @param sentAt `performance.now()` from before the renewal was sent */
  renewed(sentAt: number): void {
    this.#until = Math.max(this.#until, sentAt + this.#leaseMs)
    this.#timer ??= this.#watch()
  }

  /** Ends the lease without a call of `onEnd`. */
  stop(): void {
    clearTimeout(this.#timer)
    this.#timer = undefined
    this.#until = Number.NEGATIVE_INFINITY
  }

  /** One timer a lease instead of one a renewal: it is set again when it finds the lease renewed. */
  #watch(): Timer {
    const timer = setTimeout(
      () => {
        this.#timer = this.isOver ? undefined : this.#watch()
        if (this.#timer === undefined) this.#onEnd()
      },
      Math.min(Math.max(0, this.leftMs), maxWaitMs),
    )
    unref(timer)
    return timer
  }
}
