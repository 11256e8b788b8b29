import { WebhookError } from '../../errors.ts'
import type { MaybePromise } from '../../internal/maybe-promise.ts'
import type { TransactionScope } from '../inbox.ts'
import type { HeldEvent } from '../sql/database.ts'
import type { SqliteDatabase } from './connection.ts'
import { LentClient } from './lent-client.ts'
import { transact } from './statements.ts'

/** `never` for a promise: an async function must not compile. */
export type Synchronous<Result> = Result extends PromiseLike<unknown> ? never : Result

/** Runs handlers' functions in transactions that also record their handler as completed. */
export class RecordedRuns {
  readonly #lent: LentClient
  readonly #sql

  /** @param client what handlers write with */
  constructor(database: SqliteDatabase, client: object) {
    this.#lent = new LentClient(client)
    this.#sql = {
      held: database.prepare(transact.held),
      complete: database.prepare(transact.complete),
      completed: database.prepare(transact.completed),
    }
  }

  /**
   * Records the handler as completed and runs its function, in the caller's transaction.
   * @throws WebhookError `lease_lost` if the handler must not run
   */
  run<Result>(
    held: HeldEvent,
    { handler, signal }: TransactionScope,
    run: (client: never) => MaybePromise<Result>,
  ): Result {
    signal.throwIfAborted()
    const completed = this.#completed(held)
    if (completed.includes(handler)) throw new WebhookError('lease_lost', 'the handler has already completed')
    this.#sql.complete.run(JSON.stringify([...completed, handler]), held.id)
    const result = this.#lent.lend(() => this.isRecorded(held.id, handler), run)
    signal.throwIfAborted()
    return result as Result
  }

  #completed({ id, media, owner, turn }: HeldEvent): readonly string[] {
    const row = this.#sql.held.get(id, Number(media), owner, turn) as { completed: string } | null | undefined
    if (!row) throw new WebhookError('lease_lost', 'the event has ended, or another process has it')
    return JSON.parse(row.completed)
  }

  isRecorded(id: number, handler: string): boolean {
    const row = this.#sql.completed.get(id) as { completed: string } | null | undefined
    return row ? (JSON.parse(row.completed) as string[]).includes(handler) : false
  }
}
