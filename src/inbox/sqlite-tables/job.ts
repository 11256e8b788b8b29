import type { MaybePromise } from '../../internal/maybe-promise.ts'
import { type EarlierAttempts, Job } from '../engine/jobs.ts'
import type { AcceptedEvent, Attempt, TransactionScope } from '../inbox.ts'

/** Runs the transactions of handlers. */
export interface Transactions {
  /** Commits what `run` writes together with the record that the handler has completed. */
  run<Result>(
    job: SqliteJob,
    scope: TransactionScope,
    run: (database: never) => MaybePromise<Result>,
  ): Promise<Result>
}

/** An event of the file. */
export class SqliteJob extends Job implements Attempt {
  /** The row that holds it. */
  readonly row: number
  /** The number of processes that ended while its attempt was the only one. */
  crashes: number
  /** The time of its next attempt, in ms of `performance.now`, where it waits for one. */
  dueAt = 0
  /** The newest retry to be recorded. Its attempt may have the number of the one before, if that did not count. */
  postponed: object | undefined
  readonly #transactions: Transactions

  constructor(
    accepted: AcceptedEvent,
    row: number,
    transactions: Transactions,
    earlier?: EarlierAttempts & { readonly crashes: number; readonly dueInMs?: number },
  ) {
    super(accepted, earlier)
    this.row = row
    this.crashes = earlier?.crashes ?? 0
    if (earlier?.dueInMs !== undefined) this.dueAt = performance.now() + earlier.dueInMs
    this.#transactions = transactions
  }

  transaction<Result>(scope: TransactionScope, run: (database: never) => MaybePromise<Result>): Promise<Result> {
    return this.#transactions.run(this, scope, run)
  }

  override nextAttempt(...result: Parameters<Job['nextAttempt']>): void {
    super.nextAttempt(...result)
    this.crashes = 0
  }
}
