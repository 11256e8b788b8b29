import { isPromise, type MaybePromise } from './maybe-promise.ts'

/** Makes a function whose calls share the run in progress. */
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
