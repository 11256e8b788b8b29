import { ChurnMap } from './churn-map.ts'
import { type Timer, unref } from './timers.ts'

/** Something that has a time to finish. */
export interface Timed {
  /** In ms of `performance.now`. */
  readonly startedAt: number
  /** Told when its time is up. */
  expire(): void
}

// Workers stop a timer with the request in which it was set: there it cannot serve the runs of other requests.
const timersEndWithRequests =
  (globalThis as { navigator?: { userAgent?: string } }).navigator?.userAgent === 'Cloudflare-Workers'

/**
 * Ends the time of runs that all have the same time, with one timer: a timer each would cost more than the rest of a
 * run does.
 */
export class Deadlines {
  readonly #timeoutMs: number
  /** In the order in which they began, which is that of their deadlines. */
  readonly #runs = new ChurnMap<Timed, true>()
  #timer: Timer | undefined

  constructor(timeoutMs: number) {
    this.#timeoutMs = timeoutMs
  }

  begin(run: Timed): void {
    this.#runs.set(run, true)
    if (this.#timer === undefined || timersEndWithRequests) this.#wait(this.#timeoutMs)
  }

  end(run: Timed): void {
    this.#runs.delete(run)
  }

  #wait(ms: number): void {
    this.#timer = setTimeout(() => this.#expire(), ms)
    // It stays behind when the last run has ended.
    unref(this.#timer)
  }

  #expire(): void {
    this.#timer = undefined
    const now = performance.now()
    for (const [run] of this.#runs) {
      // A timer may fire a fraction of a millisecond early.
      const left = run.startedAt + this.#timeoutMs - now
      if (left >= 1) return this.#wait(left)
      this.#runs.delete(run)
      run.expire()
    }
  }
}
