import { isPromise, type MaybePromise } from './maybe-promise.ts'

/** Single-flight: calls made during a run share it. */
export function shared<T>(run: () => MaybePromise<T>): () => MaybePromise<T> {
  let running: Promise<T> | undefined
  return () => {
    if (running !== undefined) return running
    const result = run()
    if (!isPromise(result)) return result
    running = result.finally(() => {
      running = undefined
    })
    return running
  }
}
