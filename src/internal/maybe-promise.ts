/** A value, or a promise of it: what is synchronous in one runtime or store may be asynchronous in another. */
export type MaybePromise<T> = T | Promise<T>

/** Whether a value has to be awaited. Awaiting only then saves a turn of the microtask queue on the hot path. */
export function isPromise<T>(value: MaybePromise<T>): value is Promise<T> {
  return typeof (value as Partial<Promise<T>> | undefined)?.then === 'function'
}
