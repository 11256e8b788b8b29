import { WebhookError } from '../../errors.ts'
import { isPromise, type MaybePromise } from '../../internal/maybe-promise.ts'
import type { TransactionScope } from '../inbox.ts'
import type { SqliteEvents } from './events.ts'
import type { SqliteJob } from './job.ts'

/** `never` for a promise, so that an asynchronous function does not compile. */
export type Synchronous<Result> = Result extends PromiseLike<unknown> ? never : Result

/** Records that a handler has completed and runs its function, as part of a transaction. If it throws, undo both. */
export function runOnce<Result>(
  events: SqliteEvents,
  { row }: SqliteJob,
  { handler, signal }: TransactionScope,
  run: () => MaybePromise<Result>,
): Result {
  signal.throwIfAborted()
  events.completeOnce(row, handler)
  const result = run()
  if (isPromise(result)) {
    // It may reject later, and no code awaits it.
    Promise.resolve(result).catch(() => {})
    const message = 'the function returned a promise: with SQLite it has to be synchronous'
    throw new WebhookError('invalid_transaction', `context.transaction: ${message}`)
  }
  signal.throwIfAborted()
  return result
}
