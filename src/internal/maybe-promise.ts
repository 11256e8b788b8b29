/** A value or a promise of it: some runtimes and stores are synchronous. */
export type MaybePromise<T> = T | Promise<T>

/** Awaiting only promises saves a microtask turn on the hot path. */
export function isPromise<T>(value: MaybePromise<T>): value is Promise<T> {
  return typeof (value as Partial<Promise<T>> | undefined)?.then === 'function'
}

/** `then`, but synchronous if the value is. */
export const whenever = <T, R>(value: MaybePromise<T>, next: (value: T) => MaybePromise<R>): MaybePromise<R> =>
  isPromise(value) ? value.then(next) : next(value)

type ReportStep = (step: string, durationMs: number, error?: unknown) => void

/** Runs a step and reports its duration (ms) and its error, if any. Without `report`, just runs it. */
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
