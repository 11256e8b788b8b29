import { type Timer, unref } from '../../internal/timers.ts'

/** Mean time between two claims that follow notifications, over all processes (ms). */
const meanIntervalMs = 10

/**
 * Throttles notifications of accepted events. Every process hears of them, and most would find nothing, so the more processes
 * there are, the less often each one looks; jitter keeps them apart. Waking one process instead of all would save little: under
 * load a claim found 41 events with two processes and 35 with six.
 */
export class NotifyThrottle {
  readonly #processes: () => number
  readonly #follow: () => void
  /** Time from which on a notification is followed (`performance.now()`). */
  #openAt = Number.NEGATIVE_INFINITY
  #timer: Timer | undefined

  /**
   * @param processes number of processes
   * @param follow looks for events
   */
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
