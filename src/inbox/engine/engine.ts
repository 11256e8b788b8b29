import { requestLifetimes } from '../../internal/requests.ts'
import { longestWaitMs } from '../../internal/timers.ts'
import type { AttemptResult, Handle } from '../inbox.ts'
import type { Job, JobAttempt, JobEnd } from './job.ts'
import type { Jobs } from './jobs.ts'
import { Lanes } from './lanes.ts'
import type { DeadResult, RetryResult, Settling } from './settling.ts'

export interface EngineOptions<EachJob extends Job> {
  readonly handle: Handle
  readonly jobs: Jobs<EachJob>
  readonly settling: Settling<EachJob>
  readonly concurrency: number
}

/** The maximum delay of a retry's timer, in ms. A timer that is later counts as lost. */
const retrySlackMs = 1_000

/** The number of requests that may end while they handle an event, on Workers. */
const maxRequests = 10

/**
 * Runs accepted events. A job waits in its lane until a slot is free, and is running while an attempt is made. The
 * result of the attempt settles the job: it is completed, becomes a dead letter, or is retried. This process retries it
 * after a pause, or any process that claims it.
 */
export class Engine<EachJob extends Job> {
  readonly #handle: Handle
  readonly #jobs: Jobs<EachJob>
  readonly #settling: Settling<EachJob>
  protected readonly lanes: Lanes<EachJob>
  /** `undefined` if requests do not end work. */
  readonly requests = requestLifetimes()
  #releaseRetries: (() => void) | undefined

  constructor({ handle, jobs, settling, concurrency }: EngineOptions<EachJob>) {
    this.#handle = handle
    this.#jobs = jobs
    this.#settling = settling
    this.lanes = new Lanes(concurrency, (job) => this.#start(job), this.requests)
  }

  get running(): number {
    return this.lanes.running
  }

  add(job: EachJob): void {
    this.requests?.begin(job)
    job.state = 'waiting'
    this.lanes.add(job)
  }

  /** Adds a job whose next attempt is due in `delayMs`. */
  addLater(job: EachJob, delayMs: number): void {
    job.state = 'retrying'
    if (this.#releaseRetries !== undefined) return this.#releaseRetries()
    this.requests?.begin(job, delayMs + retrySlackMs)
    job.since = Date.now() + delayMs
    job.retryTimer = setTimeout(() => this.add(job), Math.min(delayMs, longestWaitMs))
  }

  /** Starts the next attempt of a job immediately. Returns `false` if the job does not wait for one. */
  retryNow(job: EachJob | undefined): boolean {
    if (job?.state !== 'retrying') return false
    clearTimeout(job.retryTimer)
    job.since = Date.now()
    this.add(job)
    return true
  }

  /**
   * Starts no more attempts.
   * @param releaseRetries releases the jobs that wait for a retry. Called now, and for each job that would wait later
   */
  stop(releaseRetries = () => {}): void {
    this.#releaseRetries = releaseRetries
    releaseRetries()
    this.lanes.clear()
  }

  #start(job: EachJob): void {
    if (job.hasEnded) return this.lanes.ended(job)
    // The job's own request is over, and the job runs in this one.
    if (this.requests?.isOver(job)) this.requests.begin(job)
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

  /** Makes the attempt. */
  protected run(attempt: JobAttempt<EachJob>): void {
    const { job } = attempt
    // An abandoned job has another attempt, and another place in its lane.
    if (job.attempt !== attempt) return
    // The inbox may have ended the job in the meantime.
    if (job.hasEnded) return this.lanes.ended(job)
    if (this.#settling.progress !== undefined) this.#recordProgress(attempt)
    void this.#handle(job.accepted, attempt).then((result) => {
      if (job.attempt !== attempt) return
      // The job's lease has ended. The job keeps its place in the lane, and continues unless another process has it.
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

  /** Settles the job of an attempt that has ended. */
  protected settle(attempt: JobAttempt<EachJob>, result: AttemptResult): void {
    const { job } = attempt
    // The job's lease was lost, or the inbox released the job.
    if (job.hasEnded) return
    if (result.status === 'retry' && !job.once && this.#settling.retries === 'here') return this.#retry(attempt, result)
    job.state = 'recording'
    const end = (end: JobEnd) => () => this.#jobs.end(job, end)
    if (result.status === 'done') this.#settling.complete(attempt, end('handled'))
    else if (job.once) {
      this.#settling.release?.(job, result.completed, end('failed'))
      // The request may end before the storage answers, and the lease runs out by itself.
      if (this.requests) end('failed')()
    } else if (result.status === 'dead') this.#settling.deadLetter(job, result, end('dead-lettered'))
    else this.#settling.retry(attempt, result, end('retried'))
  }

  #retry(attempt: JobAttempt<EachJob>, retry: RetryResult): void {
    const { job } = attempt
    job.nextAttempt(retry.completed, retry.failures, retry.counts)
    this.addLater(job, retry.delayMs)
    this.#settling.retry(attempt, retry, () => {})
  }

  /** Takes over the jobs of ended requests. Each delivery does it, since Workers run nothing between requests. */
  takeOver(): void {
    if (this.requests === undefined) return
    for (const job of this.#jobs) if (this.requests.isOver(job)) this.#abandon(job)
    // The waiting jobs may have lost their turn to start, because it ended with its request.
    this.lanes.schedule()
  }

  #abandon(job: EachJob): void {
    if (job.state === 'claiming') this.#jobs.end(job, 'lost')
    if (job.state === 'retrying') {
      clearTimeout(job.retryTimer)
      this.add(job)
    }
    const { attempt, completed, number } = job
    if (job.state !== 'running' || attempt === undefined) return
    // This is the end of the attempt. If it still returns a result, nothing is done with it.
    job.attempt = undefined
    this.lanes.ended(job)
    const again = { status: 'retry', delayMs: 0, completed, failures: [] } as const
    this.settle(attempt as JobAttempt<EachJob>, number < maxRequests ? again : endedTooOften(job))
  }
}

function endedTooOften({ completed }: Job): DeadResult {
  const message = `${maxRequests} requests ended before the event was handled`
  return { status: 'dead', completed, failures: [{ handler: 'none', message }] }
}
