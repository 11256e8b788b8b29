/** A value, or a promise of it: some runtimes and stores are synchronous, others are not. */
export type MaybePromise<T> = T | Promise<T>

/**
 * Returns true if a value has to be awaited. Awaiting only then saves a turn of the microtask queue on the hot path.
 */
export function isPromise<T>(value: MaybePromise<T>): value is Promise<T> {
  return typeof (value as Partial<Promise<T>> | undefined)?.then === 'function'
}

/** Calls `next` with a value, now or once it has resolved. */
export const whenever = <T, R>(value: MaybePromise<T>, next: (value: T) => MaybePromise<R>): MaybePromise<R> =>
  isPromise(value) ? value.then(next) : next(value)

/** Takes the duration of a step, and its error if it failed. */
type ReportStep = (step: string, durationMs: number, error?: unknown) => void

/** Runs a step, and reports how long it took, in ms, and its error. Without a reporter, nothing is measured. */
export function measure<Returned>(report: ReportStep | undefined, step: string, run: () => Returned): Returned {
  if (report === undefined) return run()
  const startedAt = performance.now()
  const ended = (error?: unknown) => report(step, performance.now() - startedAt, error)
  try {
    const result = run()
    if (isPromise<unknown>(result)) result.then(() => ended(), ended)
    else ended()
    return result
  } catch (error) {
    ended(error)
    throw error
  }
}
