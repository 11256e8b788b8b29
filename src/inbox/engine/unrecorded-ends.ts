import type { Job, JobAttempt } from './job.ts'
import type { DeadResult, RetryResult, Settling } from './settling.ts'

/**
 * Counts events whose last attempt is not recorded, because the storage is slow or failing. At `max`, no attempt
 * starts: a crash would repeat the effects of all of them.
 */
export class UnrecordedEnds<EachJob extends Job> implements Settling<EachJob> {
  readonly retries: Settling['retries']
  readonly begin: Settling<EachJob>['begin']
  readonly progress: Settling<EachJob>['progress']
  readonly release: Settling<EachJob>['release']
  readonly #settling: Settling<EachJob>
  readonly #onFull: () => void
  readonly #max: number
  /** Per job, the newest record; it supersedes earlier ones. */
  readonly #records = new Map<EachJob, () => void>()

  /** @param onFull called when {@link isFull} changes */
  constructor(settling: Settling<EachJob>, onFull: () => void, max: number) {
    this.#settling = settling
    this.#onFull = onFull
    this.#max = max
    this.retries = settling.retries
    this.begin = settling.begin?.bind(settling)
    this.progress = settling.progress?.bind(settling)
    this.release = settling.release?.bind(settling)
  }

  get isFull(): boolean {
    return this.#records.size >= this.#max
  }

  complete(attempt: JobAttempt<EachJob>, recorded: () => void): void {
    this.#settling.complete(attempt, this.#count(attempt.job, recorded))
  }

  deadLetter(job: EachJob, dead: DeadResult, recorded: () => void): void {
    this.#settling.deadLetter(job, dead, this.#count(job, recorded))
  }

  retry(attempt: JobAttempt<EachJob>, retry: RetryResult, recorded: () => void): void {
    this.#settling.retry(attempt, retry, this.#count(attempt.job, recorded))
  }

  #count(job: EachJob, recorded: () => void): () => void {
    const record = () => {
      if (this.#records.get(job) === record) this.#change(() => this.#records.delete(job))
      recorded()
    }
    this.#change(() => this.#records.set(job, record))
    return record
  }

  #change(change: () => void): void {
    const wasFull = this.isFull
    change()
    if (wasFull !== this.isFull) this.#onFull()
  }
}
