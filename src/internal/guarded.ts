import { isPromise } from './maybe-promise.ts'

/** Calls `call` once within a span, even if the span throws, or calls it later or not at all. */
export function calledWithin<Result>(
  span: { within(call: () => void): void },
  call: () => Result,
  threw: (error: unknown) => void,
): Result {
  let outcome: (() => Result) | undefined
  const once = (): (() => Result) => (outcome ??= capture(call))
  guarded(() => span.within(() => void once()), threw)
  return once()()
}

/** Runs a function. What it returns gives its result, or throws what it threw. */
function capture<Result>(call: () => Result): () => Result {
  try {
    const result = call()
    return () => result
  } catch (error) {
    return () => {
      throw error
    }
  }
}

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
