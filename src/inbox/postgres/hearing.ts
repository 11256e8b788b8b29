import { type Timer, unref } from '../../internal/timers.ts'

/** The mean time between the claims of all processes that follow notifications, in ms. */
const heardMs = 10

/**
 * Follows the notifications of other processes that have accepted events. Every process hears of them, and most would find
 * none. So the more processes there are, the less often each one looks. The random part keeps them from looking at the same
 * time.
 *
 * To wake one process instead of all would save little. Under load, a claim found 41 events with two processes and 35 with
 * six. Yet each event took 1.6 times as much CPU with six: 1.8 times in Node, and 1.5 times in Postgres, with all of them
 * on two cores. Processes that paused after they had found nothing did not help either.
 */
export class Hearing {
  readonly #processes: () => number
  readonly #follow: () => void
  /** The time from which on a notification is followed. */
  #hearsAt = Number.NEGATIVE_INFINITY
  #timer: Timer | undefined

  /**
   * @param processes returns the number of processes
   * @param follow looks for events
   */
  constructor(processes: () => number, follow: () => void) {
    this.#processes = processes
    this.#follow = follow
  }

  hear(): void {
    const waitMs = this.#hearsAt - performance.now()
    if (waitMs <= 0) {
      this.#hearsAt = performance.now() + heardMs * this.#processes() * (0.5 + Math.random())
      return this.#follow()
    }
    this.#timer ??= setTimeout(() => {
      this.#timer = undefined
      this.hear()
    }, waitMs)
    unref(this.#timer)
  }

  stop(): void {
    clearTimeout(this.#timer)
  }
}
