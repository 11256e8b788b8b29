import { maxWaitMs, type Timer, unref } from './timers.ts'

/**
 * A lease by this process's monotonic clock. The store starts counting when it *receives* a renewal, so counting
 * `leaseMs` from *sending* it is a safe lower bound, even through an outage.
 */
export class LeaseClock {
  readonly #leaseMs: number
  readonly #onEnd: () => void
  /** Expiry (`performance.now()`, ms). */
  #until = Number.NEGATIVE_INFINITY
  #timer: Timer | undefined

  /** @param onEnd called when the lease expires; after a suspension, {@link isOver} may be true before the call */
  constructor(leaseMs: number, onEnd: () => void) {
    this.#leaseMs = leaseMs
    this.#onEnd = onEnd
  }

  /** True before the first renewal, and from expiry to the next one. */
  get isOver(): boolean {
    return this.leftMs <= 0
  }

  /** Time to expiry (ms), negative after it. */
  get leftMs(): number {
    return this.#until - performance.now()
  }

  /** @param sentAt `performance.now()` before the renewal was sent */
  renewed(sentAt: number): void {
    this.#until = Math.max(this.#until, sentAt + this.#leaseMs)
    this.#timer ??= this.#watch()
  }

  /** Ends the lease without calling `onEnd`. */
  stop(): void {
    clearTimeout(this.#timer)
    this.#timer = undefined
    this.#until = Number.NEGATIVE_INFINITY
  }

  /** One timer per lease, not per renewal: it re-arms itself if the lease was renewed meanwhile. */
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
