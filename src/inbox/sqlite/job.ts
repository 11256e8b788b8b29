import type { AcceptedEvent } from '../inbox.ts'
import { type EarlierAttempts, Job } from '../shared/jobs.ts'

/** An event of the file. */
export class SqliteJob extends Job {
  /** The row that holds it. */
  readonly row: number
  /** The number of processes that ended while its attempt was the only one. */
  crashes: number

  constructor(accepted: AcceptedEvent, row: number, earlier?: EarlierAttempts & { readonly crashes: number }) {
    super(accepted, earlier)
    this.row = row
    this.crashes = earlier?.crashes ?? 0
  }

  override nextAttempt(completed: readonly string[]): void {
    super.nextAttempt(completed)
    this.crashes = 0
  }
}
