import type { MaybePromise } from './maybe-promise.ts'

/** Waits for a result; rejects with the signal's reason if aborted first. */
export function unlessAborted<Result>(signal: AbortSignal, result: MaybePromise<Result>): Promise<Result> {
  return new Promise((resolve, reject) => {
    const abort = () => reject(signal.reason)
    if (signal.aborted) abort()
    signal.addEventListener('abort', abort)
    Promise.resolve(result)
      .finally(() => signal.removeEventListener('abort', abort))
      .then(resolve, reject)
  })
}
