import { ChurnMap } from './churn-map.ts'
import { requestLifeMs, requestsEndWork } from './requests.ts'
import { type Timer, unref } from './timers.ts'

/** Something that has to finish in time. */
export interface Timed {
  /** The time at which it started, in ms of `performance.now`. */
  readonly startedAt: number
  /** Called when its time is up. */
  expire(): void
}

/** The longest time limit on Workers, in ms: a run has to expire while its request still exists. */
const mostInRequestMs = requestLifeMs - 5_000

/**
 * Time limits for runs that all have the same limit, on one timer: a timer for each run would cost more than the run.
 */
export class Deadlines {
  readonly #timeoutMs: number
  /** The runs in the order of their start, which is the order of their deadlines. */
  readonly #runs = new ChurnMap<Timed, true>()
  #timer: Timer | undefined

  /** @param outlivesRequests `true` if the runs go on between requests */
  constructor(timeoutMs: number, outlivesRequests = !requestsEndWork) {
    this.#timeoutMs = outlivesRequests ? timeoutMs : Math.min(timeoutMs, mostInRequestMs)
  }

  add(run: Timed): void {
    this.#runs.set(run, true)
    // The timer of one request cannot serve the runs of others.
    if (this.#timer === undefined || requestsEndWork) this.#wait(this.#timeoutMs)
  }

  remove(run: Timed): void {
    this.#runs.delete(run)
  }

  #wait(ms: number): void {
    this.#timer = setTimeout(() => this.#expire(), ms)
    // The timer outlives the last run, and must not keep the process alive.
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
