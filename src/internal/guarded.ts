import { isPromise } from './maybe-promise.ts'

/** Calls a user function. Throwing, or rejecting despite a sync type, calls `threw` instead of ending the process. */
export function guarded<Result>(call: () => Result, threw: (error: unknown) => void): Result | undefined {
  try {
    const result = call()
    if (isPromise<unknown>(result)) result.then(undefined, threw)
    return result
  } catch (error) {
    threw(error)
    return undefined
  }
}
