import type { MaybePromise } from '../../internal/maybe-promise.ts'
import { type EarlierAttempts, Job, type JobAttempt } from '../engine/job.ts'
import type { AcceptedEvent, Attempt, TransactionScope } from '../inbox.ts'

export interface Transactions {
  /** Commits what `run` writes together with the record that the handler has completed. */
  run<Result>(
    attempt: JobAttempt<SqliteJob>,
    scope: TransactionScope,
    run: (database: never) => MaybePromise<Result>,
  ): Promise<Result>
}

/** An unfinished event of the tables. */
export class SqliteJob extends Job {
  readonly row: number
  /** The crashes that it may have caused. */
  crashes: number
  /** The length of its JSON in the tables, if known. */
  textLength = 0
  /** The newest retry to be recorded. Its attempt has the number of the previous one, if that one did not count. */
  postponed: object | undefined
  readonly #transactions: Transactions | undefined

  /** @param transactions absent if the event is only read */
  constructor(
    accepted: AcceptedEvent,
    row: number,
    transactions?: Transactions,
    earlier?: EarlierAttempts & { readonly crashes: number },
  ) {
    super(accepted, earlier)
    this.row = row
    this.crashes = earlier?.crashes ?? 0
    this.#transactions = transactions
  }

  override transactionOf(attempt: JobAttempt<SqliteJob>): Attempt['transaction'] {
    const transactions = this.#transactions
    return transactions && ((scope, run) => transactions.run(attempt, scope, run))
  }

  override nextAttempt(...result: Parameters<Job['nextAttempt']>): void {
    super.nextAttempt(...result)
    this.crashes = 0
  }
}
