import { maxWaitMs } from '../../internal/timers.ts'
import type { AttemptResult, EventOrder, Handle } from '../inbox.ts'
import type { Job, JobAttempt, JobEnd, Parking } from './job.ts'
import type { Jobs } from './jobs.ts'
import { Lanes } from './lanes.ts'
import type { RetryResult, Settling } from './settling.ts'

export interface EngineOptions<EachJob extends Job> {
  readonly handle: Handle
  readonly jobs: Jobs<EachJob>
  readonly settling: Settling<EachJob>
  readonly concurrency: number
  readonly order?: EventOrder | undefined
  /**
   * Strict order: called with the jobs behind a retry, removed from their lane, when any process may make the retry.
   * Absent if this process does: the jobs then stay in their blocked lane.
   */
  readonly giveBack?: (job: EachJob, behind: readonly EachJob[]) => void
  /** False if the event must go back to the storage instead of waiting here for a handler's limit. */
  readonly mayPark?: (job: EachJob) => boolean
}

/**
 * Runs accepted events. A job waits in its lane for a slot, and runs while an attempt is made. The attempt's result
 * settles it: complete, dead-letter, or retry, either here after a delay or in any process that claims it.
 */
export class Engine<EachJob extends Job> implements Parking<EachJob> {
  readonly #handle: Handle
  readonly #jobs: Jobs<EachJob>
  readonly #settling: Settling<EachJob>
  readonly #isStrict: boolean
  readonly #giveBack: EngineOptions<EachJob>['giveBack']
  readonly #mayPark: EngineOptions<EachJob>['mayPark']
  protected readonly lanes: Lanes<EachJob>
  #releaseRetries: (() => void) | undefined

  constructor({ handle, jobs, settling, concurrency, order, giveBack, mayPark }: EngineOptions<EachJob>) {
    this.#handle = handle
    this.#jobs = jobs
    this.#settling = settling
    this.#isStrict = order === 'strict'
    this.#giveBack = giveBack
    this.#mayPark = mayPark
    this.lanes = new Lanes(concurrency, (job) => this.#start(job))
  }

  get running(): number {
    return this.lanes.running
  }

  get parked(): number {
    return this.lanes.parked.size
  }

  park(job: EachJob): boolean {
    if (this.#mayPark?.(job) === false) return false
    job.state = 'waiting'
    this.lanes.park(job)
    return true
  }

  unpark(job: EachJob): void {
    this.lanes.unpark(job)
  }

  #resume(job: EachJob, attempt: JobAttempt): void {
    const { parked } = attempt
    job.state = 'running'
    job.since = Date.now()
    attempt.parked = undefined
    parked?.resume()
  }

  add(job: EachJob): void {
    job.state = 'waiting'
    this.lanes.add(job)
  }

  /** Blocks a media item's lane until the event with that key, whose retry is in the storage, is added. */
  hold(mediaId: string, key: string): void {
    this.lanes.hold(mediaId, key)
  }

  /** Unblocks the lane of a job that was lost while it waited for its retry. */
  lost(job: EachJob): void {
    this.lanes.release(job.lane, job.key)
  }

  addLater(job: EachJob, delayMs: number): void {
    job.state = 'retrying'
    if (this.#releaseRetries !== undefined) return this.#releaseRetries()
    job.since = Date.now() + delayMs
    job.retryTimer = setTimeout(() => this.add(job), Math.min(delayMs, maxWaitMs))
  }

  /** Starts a job's next attempt now. Returns `false` if the job is not waiting for one. */
  retryNow(job: EachJob | undefined): boolean {
    if (job?.state !== 'retrying') return false
    clearTimeout(job.retryTimer)
    job.since = Date.now()
    this.add(job)
    return true
  }

  /**
   * Starts no more attempts.
   * @param releaseRetries releases the jobs waiting for a retry. Called now, and for each job that would start waiting
   * later
   */
  stop(releaseRetries = () => {}): void {
    this.#releaseRetries = releaseRetries
    releaseRetries()
    this.lanes.clear()
  }

  #start(job: EachJob): void {
    if (job.attempt?.parked !== undefined) return this.#resume(job, job.attempt)
    if (job.hasEnded) return this.lanes.ended(job)
    job.state = 'running'
    job.since = Date.now()
    const attempt = job.begin()
    const began = this.#settling.begin?.(attempt)
    if (began === undefined) return this.run(attempt)
    void began.then((dead) => {
      if (dead === undefined || job.attempt !== attempt) return this.run(attempt)
      this.settle(attempt, dead)
      this.lanes.ended(job)
    })
  }

  protected run(attempt: JobAttempt<EachJob>): void {
    const { job } = attempt
    // An abandoned job: it has a newer attempt, with its own place in the lane.
    if (job.attempt !== attempt) return
    // The inbox may have ended it meanwhile.
    if (job.hasEnded) return this.lanes.ended(job)
    if (this.#settling.progress !== undefined) this.#recordProgress(attempt)
    attempt.parking = this
    void this.#handle(job.accepted, attempt).then((result) => {
      if (job.attempt !== attempt) return
      // The lease expired. Keep the job's place in its lane and go on, unless another process has it.
      if (attempt.aborted && !job.hasEnded && !job.once && result.status === 'retry') {
        job.completed = result.completed
        return this.#start(job)
      }
      this.settle(attempt, result)
      this.lanes.ended(job)
    })
  }

  #recordProgress(attempt: JobAttempt<EachJob>): void {
    const completed = [...attempt.completed]
    attempt.succeeded = (handler) => {
      completed.push(handler)
      return this.#settling.progress?.(attempt.job, completed)
    }
  }

  protected settle(attempt: JobAttempt<EachJob>, result: AttemptResult): void {
    const { job } = attempt
    // Its lease was lost, or the inbox released it.
    if (job.hasEnded) return
    if (this.#isStrict && result.status === 'retry') this.#holdBack(job)
    if (result.status === 'retry' && !job.once && this.#settling.retries === 'here') return this.#retry(attempt, result)
    job.state = 'recording'
    const end = (end: JobEnd) => () => this.#jobs.end(job, end)
    if (result.status === 'done') this.#settling.complete(attempt, end('handled'))
    else if (job.once) this.#settling.release?.(job, result.completed, end('failed'))
    else if (result.status === 'dead') this.#settling.deadLetter(job, result, end('dead-lettered'))
    else this.#settling.retry(attempt, result, end('retried'))
  }

  #holdBack(job: EachJob): void {
    if (this.#giveBack === undefined) this.lanes.hold(job.lane, job.key)
    else this.#giveBack(job, this.lanes.removeBehind(job))
  }

  #retry(attempt: JobAttempt<EachJob>, retry: RetryResult): void {
    const { job } = attempt
    job.nextAttempt(retry.completed, retry.failures, retry.counts)
    this.addLater(job, retry.delayMs)
    this.#settling.retry(attempt, retry, () => {})
  }
}
