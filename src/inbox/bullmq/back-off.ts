import type { Worker } from 'bullmq'
import { type Timer, unref } from '../../internal/timers.ts'

/** First and longest delay (ms). */
const firstMs = 50
const maxMs = 1_000

/** Pauses a worker's polling, twice as long after each futile poll. */
export class BackOff {
  readonly #worker: Pick<Worker, 'pause' | 'resume'>
  #delayMs = 0
  #timer: Timer | undefined
  #isStopped = false

  constructor(worker: Pick<Worker, 'pause' | 'resume'>) {
    this.#worker = worker
  }

  /** A no-op during a delay. */
  grow(): void {
    if (this.#isStopped || this.#timer !== undefined) return
    this.#delayMs = Math.min(maxMs, this.#delayMs * 2 || firstMs)
    void this.#worker.pause(true)
    this.#timer = setTimeout(() => {
      this.#timer = undefined
      void this.#worker.resume()
    }, this.#delayMs)
    unref(this.#timer)
  }

  /** Makes the next delay a short one: polling paid off. */
  reset(): void {
    this.#delayMs = 0
  }

  stop(): void {
    this.#isStopped = true
    clearTimeout(this.#timer)
  }
}
