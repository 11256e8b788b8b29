import type { MaybePromise } from './maybe-promise.ts'

/** Waits for a result until the signal is aborted. Then it rejects with the signal's reason. */
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
