import type { AcceptedEvent } from '../inbox.ts'
import { type EarlierAttempts, Job } from '../shared/jobs.ts'

/** An event of the file. */
export class SqliteJob extends Job {
  /** The row that holds it. */
  readonly row: number
  /** The number of earlier starts of its attempt, by processes that ended during it. Only for a job read from the file. */
  starts: number | undefined

  constructor(accepted: AcceptedEvent, row: number, earlier?: EarlierAttempts & { readonly starts: number }) {
    super(accepted, earlier)
    this.row = row
    this.starts = earlier?.starts
  }

  override nextAttempt(completed: readonly string[]): void {
    super.nextAttempt(completed)
    this.starts = undefined
  }
}
