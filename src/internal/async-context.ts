import { requestsEndWork } from './requests.ts'

/** Calls a function in a captured context. */
export type InContext = <Result>(call: () => Result) => Result

type Globals = {
  AsyncContext?: { Snapshot?: new () => { run: InContext } }
  process?: { getBuiltinModule?: (id: string) => { AsyncLocalStorage?: { snapshot?: () => InContext } } | undefined }
}

/**
 * Captures the current async context, that of `AsyncLocalStorage`. Timers and batches would otherwise run a user's
 * function in the context of the request that happened to start them.
 */
export function captureContext(): InContext {
  const { AsyncContext, process } = globalThis as Globals
  const here: InContext = (call) => call()
  // Workers refuse a context of another request, and start each run in its own.
  if (requestsEndWork) return here
  if (AsyncContext?.Snapshot !== undefined) {
    const snapshot = new AsyncContext.Snapshot()
    return (call) => snapshot.run(call)
  }
  // No import: the core runs where this module is missing.
  return process?.getBuiltinModule?.('node:async_hooks')?.AsyncLocalStorage?.snapshot?.() ?? here
}
