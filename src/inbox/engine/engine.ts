import type { MaybePromise } from '../../internal/maybe-promise.ts'
import { requestLifeMs, requestsEndWork } from '../../internal/requests.ts'
import { longestWaitMs } from '../../internal/timers.ts'
import type { AttemptResult, Handle } from '../inbox.ts'
import type { Job, Jobs } from './jobs.ts'
import { Lanes } from './lanes.ts'

/** The result of an attempt after which the event is a dead letter. */
export type DeadResult = AttemptResult & { status: 'dead' }

/** The result of an attempt after which the event waits for the next one. */
export type RetryResult = AttemptResult & { status: 'retry' }

/** Records the outcome of events. Each `recorded` is called once the record is safe. */
export interface Ledger<EachJob extends Job = Job> {
  /** Records that an attempt starts. The attempt waits for the promise, and is not made after a dead result. */
  start?(job: EachJob): Promise<DeadResult | undefined> | undefined
  complete(job: EachJob, recorded: () => void): void
  deadLetter(job: EachJob, dead: DeadResult, recorded: () => void): void
  /** Records that the one attempt of a job of `handleNow` failed. */
  release?(job: EachJob, completed: readonly string[], recorded: () => void): void
  /** Records a failed attempt and lets go of the event: the next attempt is made by whoever takes it up when it is due. */
  retry?(job: EachJob, retry: RetryResult, recorded: () => void): void
  /** Records that the next attempt is due at `dueAt`, in ms since the epoch. `job` already counts that attempt. */
  postpone?(job: EachJob, dueAt: number): void
  /** Records that the handlers `completed` have succeeded, while others are still to run. */
  progress?(job: EachJob, completed: readonly string[]): MaybePromise<void>
}

export interface EngineOptions<EachJob extends Job> {
  readonly handle: Handle
  readonly jobs: Jobs<EachJob>
  readonly ledger: Ledger<EachJob>
  readonly concurrency: number
}

/** The time by which the timer of a retry may be late before it counts as lost, in ms. */
const retrySlackMs = 1_000

/** The number of requests that may end while they handle an event, on Workers. */
const maxRequests = 10

const lost = ({ completed }: Job): DeadResult => {
  const message = `${maxRequests} requests ended before the event was handled`
  return { status: 'dead', completed, failures: [{ handler: 'none', message }] }
}

/** Handles accepted events: each waits in its lane, runs, and is completed, retried or dead-lettered. */
export class Engine<EachJob extends Job> {
  readonly #handle: Handle
  readonly #jobs: Jobs<EachJob>
  readonly #ledger: Ledger<EachJob>
  readonly #lanes: Lanes<EachJob>
  #releaseRetries: (() => void) | undefined

  constructor({ handle, jobs, ledger, concurrency }: EngineOptions<EachJob>) {
    this.#handle = handle
    this.#jobs = jobs
    this.#ledger = ledger
    this.#lanes = new Lanes(concurrency, (job, turn) => this.#run(job, turn))
  }

  get running(): number {
    return this.#lanes.running
  }

  add(job: EachJob): void {
    if (requestsEndWork) job.aliveUntil = performance.now() + requestLifeMs
    job.state = 'waiting'
    this.#lanes.add(job)
  }

  /** Adds a job whose next attempt is due in `delayMs`. */
  addLater(job: EachJob, delayMs: number): void {
    job.state = 'retrying'
    if (this.#releaseRetries !== undefined) return this.#releaseRetries()
    job.aliveUntil = performance.now() + delayMs + retrySlackMs
    job.since = Date.now() + delayMs
    job.retryTimer = setTimeout(() => this.add(job), Math.min(delayMs, longestWaitMs))
  }

  /** Starts the next attempt of a job that waits for it. `false`: it does not. */
  retryNow(job: EachJob | undefined): boolean {
    if (job?.state !== 'retrying') return false
    clearTimeout(job.retryTimer)
    job.since = Date.now()
    this.add(job)
    return true
  }

  /**
   * Starts no more attempts.
   * @param releaseRetries gives up the jobs that wait for a retry. Called now, and for each job that would wait later
   */
  stop(releaseRetries: () => void): void {
    this.#releaseRetries = releaseRetries
    releaseRetries()
    this.#lanes.clear()
  }

  /** Takes over the jobs of requests that have ended. Each delivery does it, since Workers run nothing in between. */
  takeOver(): void {
    if (!requestsEndWork) return
    const now = performance.now()
    for (const job of this.#jobs) {
      if (job.aliveUntil > now) continue
      if (job.state === 'claiming') this.#jobs.end(job, 'failed')
      if (job.state === 'retrying') {
        clearTimeout(job.retryTimer)
        this.add(job)
      }
      if (job.state !== 'running') continue
      this.#lanes.abandon(job)
      this.#finished(
        job,
        job.number < maxRequests ? { status: 'retry', delayMs: 0, completed: job.completed, failures: [] } : lost(job),
      )
    }
    // The turn in which the waiting ones were to start may have ended with its request.
    this.#lanes.schedule()
  }

  #run(job: EachJob, turn: number): void {
    if (job.hasEnded) return this.#lanes.ended(job, turn)
    // Its own request is over, and it runs in this one.
    if (requestsEndWork && job.aliveUntil <= performance.now()) job.aliveUntil = performance.now() + requestLifeMs
    job.state = 'running'
    const started = this.#ledger.start?.(job)
    if (started === undefined) return this.#attempt(job, turn)
    void started.then((dead) => {
      if (dead === undefined) return this.#attempt(job, turn)
      this.#finished(job, dead)
      this.#lanes.ended(job, turn)
    })
  }

  #attempt(job: EachJob, turn: number): void {
    // The inbox may have given up on it in the meantime.
    if (job.hasEnded) return this.#lanes.ended(job, turn)
    if (this.#ledger.progress !== undefined) this.#recordProgress(job)
    const { number } = job
    void this.#handle(job.accepted, job).then((result) => {
      // Its lease has ended. It keeps its place in the lane, and goes on unless another process has it.
      if (job.aborted && !job.hasEnded && !job.once && result.status === 'retry') {
        job.again(result.completed)
        return this.#run(job, turn)
      }
      // An attempt that was abandoned can still end, when the next attempt has the event.
      if (job.number === number) this.#finished(job, result)
      this.#lanes.ended(job, turn)
    })
  }

  #recordProgress(job: EachJob): void {
    const completed = [...job.completed]
    job.succeeded = (handler) => {
      completed.push(handler)
      return this.#ledger.progress?.(job, completed)
    }
  }

  #finished(job: EachJob, result: AttemptResult): void {
    // Its lease was lost, or the inbox gave up on it.
    if (job.hasEnded) return
    const { status } = result
    if (status === 'retry' && !job.once && this.#ledger.retry === undefined) return this.#retryLater(job, result)
    job.state = 'recording'
    const recorded = () => this.#jobs.end(job, status === 'done' ? 'handled' : 'failed')
    if (status === 'done') this.#ledger.complete(job, recorded)
    else if (job.once) this.#ledger.release?.(job, result.completed, recorded)
    else if (status === 'dead') this.#ledger.deadLetter(job, result, recorded)
    else this.#ledger.retry?.(job, result, recorded)
  }

  #retryLater(job: EachJob, { delayMs, completed, failures, counts }: RetryResult): void {
    job.nextAttempt(completed, failures, counts)
    this.addLater(job, delayMs)
    this.#ledger.postpone?.(job, Date.now() + delayMs)
  }
}
