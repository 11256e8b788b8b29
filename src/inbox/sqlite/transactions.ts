import { WebhookError } from '../../errors.ts'
import type { MaybePromise } from '../../internal/maybe-promise.ts'
import type { JobAttempt } from '../engine/job.ts'
import type { Attempt, TransactionScope } from '../inbox.ts'
import type { SqlJob } from '../sql/job.ts'
import {
  inSavepoint,
  isConstraint,
  isStorageFailure,
  type Outcome,
  type SqliteDatabase,
} from '../sqlite-tables/database.ts'
import { LentClient } from '../sqlite-tables/lent-client.ts'
import { RecordedRuns, type Synchronous } from '../sqlite-tables/transactions.ts'
import type { GroupCommit } from './commits.ts'
import type { OwnedFile } from './file.ts'

/** What `sqliteInbox` adds to a handler's context. */
export interface SqliteTransactional<Database> {
  /**
   * Runs `run` in a transaction of the inbox's file, and commits its writes together with the record that this handler
   * has completed: both or neither, and only while this process holds the event. After that the handler never runs
   * again for this event. An error of `run`, an aborted signal or a lost lease rolls everything back, and nothing else.
   * A handler can call it once. What the handler does afterwards is not repeated if it fails.
   *
   * `run` is synchronous, and deliveries wait for it: keep it short. It may be called more than once; all calls but the
   * last are rolled back. It must not begin or end a transaction with SQL; savepoints are fine. `database`, its
   * statements and iterators work until `run` returns, or until SQLite rolls the transaction back, as on a full disk.
   * Open iterators are closed.
   *
   * @throws WebhookError `lease_lost`, `unavailable` if the file cannot be written, `invalid_transaction` if `run`
   * returns a promise, ends the transaction or uses `database` after its end, or the signal's reason. Throws
   * `invalid_transaction` synchronously, instead of rejecting, when called again or after the handler has ended
   */
  transaction<Result>(run: (database: Database) => Synchronous<Result>): Promise<Result>
}

/** Delay before a record is looked up again, while the file can't be read (ms). */
const rereadMs = 1_000

export class SqliteTransactions {
  readonly #commits: GroupCommit
  readonly #database: SqliteDatabase
  readonly #runs: RecordedRuns

  constructor(commits: GroupCommit, { database, events }: OwnedFile) {
    this.#commits = commits
    this.#database = database
    this.#runs = new RecordedRuns(events, new LentClient(database))
  }

  async run<Result>(
    attempt: JobAttempt<SqlJob>,
    scope: TransactionScope,
    run: (database: never) => MaybePromise<Result>,
  ): Promise<Result> {
    const id = attempt.job.id as number
    let outcome: Outcome<Result> | undefined
    const write = () => {
      // Retried although it took effect: its answer was an error.
      if (outcome !== undefined && this.#runs.isRecorded(id, scope.handler)) return
      outcome = undefined
      outcome = inSavepoint(this.#database, () => this.#runs.run(id, scope, run))
    }
    try {
      await this.#commits.add(write, { isHandlers: true })
    } catch (error) {
      if (outcome === undefined || !(await this.#isRecorded(attempt, scope.handler)))
        throw failure(error, attempt, scope)
    }
    return resultOf(outcome as unknown as Outcome<Result>, scope)
  }

  /** Looks up the record. Waits while the file can't be read. */
  async #isRecorded(attempt: JobAttempt<SqlJob>, handler: string): Promise<boolean> {
    while (!attempt.aborted) {
      try {
        return this.#runs.isRecorded(attempt.job.id as number, handler)
      } catch {
        await new Promise((resolve) => setTimeout(resolve, rereadMs))
      }
    }
    return false
  }
}

function resultOf<Result>(outcome: Outcome<Result>, scope: TransactionScope): Result {
  if (!('error' in outcome)) return outcome.result
  // On a full disk, the handler's statement may be the first to fail.
  scope.storageFailed = isStorageFailure(outcome.error)
  throw outcome.error
}

function failure(error: unknown, attempt: Attempt, scope: TransactionScope): unknown {
  if (attempt.aborted) return attempt.signal.reason
  // A foreign key may be checked only at the commit.
  if (error instanceof WebhookError || isConstraint(error)) return error
  scope.storageFailed = isStorageFailure(error)
  const message = `the transaction was not committed: ${Object(error).message}`
  return new WebhookError('unavailable', message, { cause: error })
}
