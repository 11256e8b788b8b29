import { type Timer, unref } from '../../internal/timers.ts'

/** Mean interval of claims that follow notifications, over all processes (ms). */
const meanIntervalMs = 10

/**
 * Throttles notifications. Every process hears them and most find nothing, so the more processes, the less often each
 * one looks. Jitter keeps them apart. Waking one instead of all would save little: under load, a claim finds nearly as
 * many events with six processes as with two.
 */
export class NotifyThrottle {
  readonly #processes: () => number
  readonly #follow: () => void
  /** Notifications before this time wait for it (`performance.now()`). */
  #openAt = Number.NEGATIVE_INFINITY
  #timer: Timer | undefined

  /** @param follow looks for events */
  constructor(processes: () => number, follow: () => void) {
    this.#processes = processes
    this.#follow = follow
  }

  notified(): void {
    const waitMs = this.#openAt - performance.now()
    if (waitMs <= 0) {
      this.#openAt = performance.now() + meanIntervalMs * this.#processes() * (0.5 + Math.random())
      return this.#follow()
    }
    this.#timer ??= setTimeout(() => {
      this.#timer = undefined
      this.notified()
    }, waitMs)
    unref(this.#timer)
  }

  stop(): void {
    clearTimeout(this.#timer)
  }
}
