import type { MaybePromise } from '../../internal/maybe-promise.ts'
import type { TransactionScope } from '../inbox.ts'
import type { SqliteEvents } from './events.ts'
import type { LentClient } from './lent-client.ts'

/** `never` for a promise: an async function must not compile. */
export type Synchronous<Result> = Result extends PromiseLike<unknown> ? never : Result

/** Runs handlers' functions in transactions that also record their handler as completed. */
export class RecordedRuns {
  readonly #events: SqliteEvents
  readonly #lent: LentClient

  constructor(events: SqliteEvents, lent: LentClient) {
    this.#events = events
    this.#lent = lent
  }

  /** Records the handler as completed and runs its function, in the caller's transaction. */
  run<Result>(id: number, { handler, signal }: TransactionScope, run: (client: never) => MaybePromise<Result>): Result {
    signal.throwIfAborted()
    this.#events.completeOnce(id, handler)
    const result = this.#lent.lend(() => this.isRecorded(id, handler), run)
    signal.throwIfAborted()
    return result as Result
  }

  isRecorded(id: number, handler: string): boolean {
    return this.#events.completed(id)?.includes(handler) === true
  }
}
