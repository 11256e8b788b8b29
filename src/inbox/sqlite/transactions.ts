import { WebhookError } from '../../errors.ts'
import type { MaybePromise } from '../../internal/maybe-promise.ts'
import { sleep } from '../../internal/timers.ts'
import type { TransactionScope } from '../inbox.ts'
import type { Database, HeldEvent } from '../sql/database.ts'
import type { GroupCommit } from './commits.ts'
import {
  inSavepoint,
  isConstraint,
  isStorageFailure,
  type Outcome,
  prepareAll,
  type SqliteDatabase,
} from './connection.ts'
import { LentClient } from './lent-client.ts'
import { transact } from './statements.ts'

/** `never` for a promise: an async function must not compile. */
export type Synchronous<Result> = Result extends PromiseLike<unknown> ? never : Result

/** What `sqliteInbox` adds to a handler's context. */
export interface SqliteTransactional<Database> {
  /**
   * Runs `run` in a transaction of the inbox's file, and commits its writes together with the record that this handler
   * has completed: both or neither, and only while this process holds the event. After that the handler never runs
   * again for this event. An error of `run`, an aborted signal or a lost lease rolls everything back, and nothing else.
   * A handler can call it once. What the handler does afterwards is not repeated if it fails.
   *
   * `run` is synchronous, and deliveries wait for it: keep it short. It may be called more than once; all calls but the
   * last are rolled back. A transaction that it begins is a savepoint, which its COMMIT or ROLLBACK ends. `database`, its
   * statements and iterators work until `run` returns, or until SQLite rolls the transaction back, as on a full disk.
   * Open iterators are closed.
   *
   * @throws WebhookError `lease_lost`, `unavailable` if the file cannot be written, `invalid_transaction` if `run`
   * returns a promise, ends the transaction or uses `database` after its end, or the signal's reason. Throws
   * `invalid_transaction` synchronously, instead of rejecting, when called again or after the handler has ended
   */
  transaction<Result>(run: (database: Database) => Synchronous<Result>): Promise<Result>
}

type Run<Result> = (client: never) => MaybePromise<Result>

/** Runs handlers' functions in transactions that also record their handler as completed. */
export class RecordedRuns {
  readonly #lent: LentClient
  readonly #sql

  /** @param client what handlers write with */
  constructor(database: SqliteDatabase, client: object, hasSavepoints = true) {
    this.#lent = new LentClient(client, hasSavepoints)
    this.#sql = prepareAll(database, transact)
  }

  /**
   * Records the handler as completed and runs its function, in the caller's transaction.
   * @throws WebhookError `lease_lost` if the handler must not run
   */
  run<Result>({ id, media, owner, turn }: HeldEvent, { handler, signal }: TransactionScope, run: Run<Result>): Result {
    signal.throwIfAborted()
    const row = this.#sql.held.get(id, Number(media), owner, turn)
    if (!row) throw new WebhookError('lease_lost', 'the event has ended, or another process has it')
    const completed = completedIn(row)
    if (completed.includes(handler)) throw new WebhookError('lease_lost', 'the handler has already completed')
    this.#sql.complete.run(JSON.stringify([...completed, handler]), id)
    const result = this.#lent.lend(() => this.isRecorded(id, handler), run)
    signal.throwIfAborted()
    return result as Result
  }

  isRecorded(id: number, handler: string): boolean {
    const row = this.#sql.completed.get(id)
    return Boolean(row) && completedIn(row).includes(handler)
  }
}

const completedIn = (row: unknown): readonly string[] => JSON.parse((row as { completed: string }).completed)

/** Delay before a record is looked up again, while the file can't be read (ms). */
const rereadMs = 1_000

/** Transactions of handlers in a file, each in a commit that it may share. */
export function fileTransactions(commits: GroupCommit, database: SqliteDatabase): Database['transaction'] {
  const runs = new RecordedRuns(database, database)
  return async <Result>(held: HeldEvent, scope: TransactionScope, run: Run<Result>): Promise<Result> => {
    let outcome: Outcome<Result> | undefined
    const write = () => {
      // Retried although it took effect: its answer was an error.
      if (outcome !== undefined && runs.isRecorded(held.id, scope.handler)) return
      outcome = undefined
      outcome = inSavepoint(database, () => runs.run(held, scope, run))
    }
    try {
      await commits.add(write, { isHandlers: true })
    } catch (error) {
      if (outcome === undefined || !(await isRecorded(runs, held.id, scope))) throw failure(error, scope)
    }
    return resultOrThrow(outcome as unknown as Outcome<Result>, scope)
  }
}

/** Looks up the record. Waits while the file can't be read. */
async function isRecorded(runs: RecordedRuns, id: number, { handler, signal }: TransactionScope): Promise<boolean> {
  while (!signal.aborted) {
    try {
      return runs.isRecorded(id, handler)
    } catch {
      await sleep(rereadMs)
    }
  }
  return false
}

function resultOrThrow<Result>(outcome: Outcome<Result>, scope: TransactionScope): Result {
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
