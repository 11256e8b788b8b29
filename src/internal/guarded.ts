import { isPromise } from './maybe-promise.ts'

/**
 * Calls a function of the user's. What it throws goes to `threw`, and so does the rejection of a promise that it returns
 * although its type allows none: unhandled, that would end the process.
 */
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
