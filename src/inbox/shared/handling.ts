import { Lanes } from '../../internal/lanes.ts'
import type { MaybePromise } from '../../internal/maybe-promise.ts'
import { longestWaitMs } from '../../internal/timers.ts'
import type { Handle, HandlingResult } from '../inbox.ts'
import type { Job } from './job.ts'
import type { Jobs } from './jobs.ts'

export type Dead = HandlingResult & { status: 'dead' }

/** Where an inbox writes down what became of an event. `recorded` is called once that is safe. */
export interface Ledger {
  /** An attempt is about to be made. With a promise it has to wait, and is not made if the event is dead by then. */
  begin?(job: Job): Promise<Dead | undefined> | undefined
  complete(job: Job, recorded: () => void): void
  bury(job: Job, dead: Dead, recorded: () => void): void
  /** The one attempt of a job of `handleNow` failed. */
  giveBack?(job: Job, completed: readonly string[], recorded: () => void): void
  /** Its next attempt, which `job` holds by now, is due at `dueAt`, in ms since the epoch. */
  postpone?(job: Job, dueAt: number): void
  /** Of its handlers, `completed` have succeeded, and others are still to run. */
  progress?(job: Job, completed: readonly string[]): MaybePromise<void>
}

export interface HandlingParts {
  readonly jobs: Jobs
  readonly ledger: Ledger
  readonly concurrency: number
}

/** The way of an accepted event: it waits in its lane, runs, and is completed, retried or buried. */
export class Handling {
  readonly #jobs: Jobs
  readonly #ledger: Ledger
  readonly #lanes: Lanes<Job>
  #handle: Handle | undefined
  #keep: (() => void) | undefined

  constructor({ jobs, ledger, concurrency }: HandlingParts) {
    this.#jobs = jobs
    this.#ledger = ledger
    this.#lanes = new Lanes(concurrency, (job) => this.#run(job))
  }

  get hasStarted(): boolean {
    return this.#handle !== undefined
  }

  get running(): number {
    return this.#lanes.running
  }

  start(handle: Handle): void {
    this.#handle = handle
  }

  add(job: Job): void {
    job.state = 'waiting'
    this.#lanes.add(job)
  }

  /** Adds a job whose next attempt is due in `delayMs`. */
  addLater(job: Job, delayMs: number): void {
    job.state = 'retrying'
    if (this.#keep !== undefined) return this.#keep()
    job.retryTimer = setTimeout(() => this.add(job), Math.min(delayMs, longestWaitMs))
  }

  /**
   * Lets nothing begin any more.
   * @param keep called now, and whenever a job that runs by now would wait for its retry, to give up what waits
   */
  stop(keep: () => void): void {
    this.#keep = keep
    keep()
    this.#lanes.clear()
  }

  #run(job: Job): Promise<void> {
    if (job.hasEnded) return Promise.resolve()
    job.state = 'running'
    const begun = this.#ledger.begin?.(job)
    if (begun === undefined) return this.#attempt(job)
    return begun.then((dead) => (dead === undefined ? this.#attempt(job) : this.#ran(job, dead)))
  }

  #attempt(job: Job): Promise<void> {
    // The inbox may have given up on it meanwhile.
    if (job.hasEnded) return Promise.resolve()
    if (this.#ledger.progress !== undefined) this.#recordProgress(job)
    const { event, receivedAt } = job.accepted
    return (this.#handle as Handle)(event, receivedAt, job.attempt).then((result) => this.#ran(job, result))
  }

  #recordProgress(job: Job): void {
    const completed = [...job.attempt.completed]
    job.attempt.succeeded = (handler) => {
      completed.push(handler)
      return this.#ledger.progress?.(job, completed)
    }
  }

  #ran(job: Job, result: HandlingResult): void {
    // Its lease was lost, or the inbox gave up on it.
    if (job.hasEnded) return
    const { status } = result
    if (status === 'retry' && !job.once) return this.#retryLater(job, result)
    job.state = 'recording'
    const recorded = () => this.#jobs.end(job, status === 'done' ? 'handled' : 'failed')
    if (status === 'done') this.#ledger.complete(job, recorded)
    else if (job.once) this.#ledger.giveBack?.(job, result.completed, recorded)
    else if (status === 'dead') this.#ledger.bury(job, result, recorded)
  }

  #retryLater(job: Job, { delayMs, completed }: HandlingResult & { status: 'retry' }): void {
    job.nextAttempt(completed)
    this.addLater(job, delayMs)
    this.#ledger.postpone?.(job, Date.now() + delayMs)
  }
}
