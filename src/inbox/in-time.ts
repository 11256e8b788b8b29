import type { MaybePromise } from '../maybe-promise.ts'

/** The answer, or a rejection when there is none after `ms`. */
export function inTime<T>(answer: MaybePromise<T>, ms: number): Promise<T> {
  return new Promise((resolve, reject) => {
    const timer = setTimeout(() => reject(new Error(`no answer within ${ms} ms`)), ms)
    Promise.resolve(answer)
      .finally(() => clearTimeout(timer))
      .then(resolve, reject)
  })
}
