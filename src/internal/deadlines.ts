import { requestsEndWork } from './requests.ts'
import { type Timer, unref } from './timers.ts'

/** Something that has to finish in time. */
export interface Timed {
  /** The time at which it started, in ms of `performance.now`. */
  readonly startedAt: number
  /** The runs that started before and after it; set by the deadlines. */
  earlier?: Timed | undefined
  later?: Timed | undefined
  /** Called when its time is up. */
  expire(): void
}

/**
 * Time limits for runs that all have the same limit, on one timer: a timer for each run would cost more than the run. The
 * runs are a list in the order of their start, which is the order of their deadlines. The links are in the runs: a Map of
 * them costs a delivery 2 % more CPU.
 */
export class Deadlines {
  readonly #timeoutMs: number
  #first: Timed | undefined
  #last: Timed | undefined
  #timer: Timer | undefined

  constructor(timeoutMs: number) {
    this.#timeoutMs = timeoutMs
  }

  add(run: Timed): void {
    run.earlier = this.#last
    if (this.#last === undefined) this.#first = run
    else this.#last.later = run
    this.#last = run
    // The timer of one request cannot serve the runs of others.
    if (this.#timer === undefined || requestsEndWork) this.#wait(this.#timeoutMs)
  }

  /** Removes a run, unless it has expired. */
  remove(run: Timed): void {
    const { earlier, later } = run
    if (earlier !== undefined) earlier.later = later
    else if (this.#first === run) this.#first = later
    if (later !== undefined) later.earlier = earlier
    else if (this.#last === run) this.#last = earlier
    run.earlier = undefined
    run.later = undefined
  }

  #wait(ms: number): void {
    this.#timer = setTimeout(() => this.#expire(), ms)
    // The timer outlives the last run, and must not keep the process alive.
    unref(this.#timer)
  }

  #expire(): void {
    const now = performance.now()
    for (let run = this.#first; run !== undefined; run = this.#first) {
      // A timer may fire a fraction of a millisecond early.
      const left = run.startedAt + this.#timeoutMs - now
      if (left >= 1) return this.#wait(left)
      this.remove(run)
      run.expire()
    }
    // Not before the loop: a run that is added when another one expires would set a timer of its own.
    this.#timer = undefined
  }
}
