/** A value, or a promise of it: some runtimes and stores are synchronous, others are not. */
export type MaybePromise<T> = T | Promise<T>

/** Says whether a value has to be awaited. Awaiting only then saves a turn of the microtask queue on the hot path. */
export function isPromise<T>(value: MaybePromise<T>): value is Promise<T> {
  return typeof (value as Partial<Promise<T>> | undefined)?.then === 'function'
}
