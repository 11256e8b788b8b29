import { LazyAbort } from '../../internal/lazy-abort.ts'
import type { AcceptedEvent, Attempt } from '../inbox.ts'
import type { Job } from './job.ts'

/** One attempt at a job: each handler that has not completed runs once. The next attempt is another object. */
export class JobAttempt<EachJob extends Job = Job> extends LazyAbort implements Attempt {
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
