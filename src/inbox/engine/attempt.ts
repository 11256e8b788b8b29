import { LazyAbort } from '../../internal/lazy-abort.ts'
import type { AcceptedEvent, Attempt } from '../inbox.ts'

/** What an attempt needs of its job. */
export interface AttemptedJob {
  readonly accepted: AcceptedEvent
  /** The number of the attempt; 1 for the first. */
  readonly number: number
  /** Names of the handlers that succeeded in earlier attempts. */
  readonly completed: readonly string[]
  /** Returns the transaction of a handler. `undefined`: the inbox has no database. */
  transactionOf(attempt: JobAttempt): Attempt['transaction']
}

/** One attempt at a job: each handler that has not completed runs once. The next attempt is another object. */
export class JobAttempt<EachJob extends AttemptedJob = AttemptedJob> extends LazyAbort implements Attempt {
  readonly job: EachJob
  readonly number: number
  readonly completed: readonly string[]
  succeeded: Attempt['succeeded']
  isPartial = false
  /** The names of the owed handlers that no process has. */
  missing: readonly string[] = []

  constructor(job: EachJob) {
    super()
    this.job = job
    this.number = job.number
    this.completed = job.completed
  }

  get accepted(): AcceptedEvent {
    return this.job.accepted
  }

  get transaction(): Attempt['transaction'] {
    return this.job.transactionOf(this)
  }
}
