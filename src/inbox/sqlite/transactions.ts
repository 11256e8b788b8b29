import { WebhookError } from '../../errors.ts'
import type { MaybePromise } from '../../internal/maybe-promise.ts'
import { sleep } from '../../internal/timers.ts'
import type { TransactionScope } from '../inbox.ts'
import type { HeldEvent } from '../sql/database.ts'
import type { GroupCommit } from './commits.ts'
import { inSavepoint, isConstraint, isStorageFailure, type Outcome, type SqliteDatabase } from './connection.ts'
import type { OwnedFile } from './file.ts'
import { RecordedRuns, type Synchronous } from './recorded-runs.ts'

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

  constructor(commits: GroupCommit, { database }: OwnedFile) {
    this.#commits = commits
    this.#database = database
    this.#runs = new RecordedRuns(database, database)
  }

  async run<Result>(
    held: HeldEvent,
    scope: TransactionScope,
    run: (database: never) => MaybePromise<Result>,
  ): Promise<Result> {
    let outcome: Outcome<Result> | undefined
    const write = () => {
      // Retried although it took effect: its answer was an error.
      if (outcome !== undefined && this.#runs.isRecorded(held.id, scope.handler)) return
      outcome = undefined
      outcome = inSavepoint(this.#database, () => this.#runs.run(held, scope, run))
    }
    try {
      await this.#commits.add(write, { isHandlers: true })
    } catch (error) {
      if (outcome === undefined || !(await this.#isRecorded(held.id, scope))) throw failure(error, scope)
    }
    return resultOf(outcome as unknown as Outcome<Result>, scope)
  }

  /** Looks up the record. Waits while the file can't be read. */
  async #isRecorded(id: number, { handler, signal }: TransactionScope): Promise<boolean> {
    while (!signal.aborted) {
      try {
        return this.#runs.isRecorded(id, handler)
      } catch {
        await sleep(rereadMs)
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

function failure(error: unknown, scope: TransactionScope): unknown {
  if (scope.signal.aborted) return scope.signal.reason
  // A foreign key may be checked only at the commit.
  if (error instanceof WebhookError || isConstraint(error)) return error
  scope.storageFailed = isStorageFailure(error)
  const message = `the transaction was not committed: ${Object(error).message}`
  return new WebhookError('unavailable', message, { cause: error })
}
