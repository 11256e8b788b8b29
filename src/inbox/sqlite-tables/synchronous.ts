import { WebhookError } from '../../errors.ts'
import { isPromise, type MaybePromise } from '../../internal/maybe-promise.ts'

/** `never` for a promise, so that an asynchronous function does not compile. */
export type Synchronous<Result> = Result extends PromiseLike<unknown> ? never : Result

/** @throws WebhookError `invalid_transaction` if the function of a transaction returned a promise */
export function checkSynchronous<Result>(result: MaybePromise<Result>): Result {
  if (!isPromise(result)) return result
  // It may reject later, and no code awaits it.
  Promise.resolve(result).catch(() => {})
  const message = 'the function returned a promise: with SQLite it has to be synchronous'
  throw new WebhookError('invalid_transaction', `context.transaction: ${message}`)
}
