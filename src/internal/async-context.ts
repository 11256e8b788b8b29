import { requestsEndWork } from './requests.ts'

/** Calls a function with arguments, so that a hot caller needs no closure. */
export type InContext = <Args extends readonly unknown[], Result>(
  call: (...args: Args) => Result,
  ...args: Args
) => Result

type Globals = {
  AsyncContext?: { Snapshot?: new () => { run: InContext } }
  process?: { getBuiltinModule?: (id: string) => { AsyncLocalStorage?: { snapshot?: () => InContext } } | undefined }
}

/** Captures the async context. Timers and batches would otherwise run user code in another request's context. */
export function captureContext(): InContext {
  const { AsyncContext, process } = globalThis as Globals
  const here: InContext = (call, ...args) => call(...args)
  // Workers reject another request's context, and each run starts in its own anyway.
  if (requestsEndWork) return here
  if (AsyncContext?.Snapshot !== undefined) {
    const snapshot = new AsyncContext.Snapshot()
    return (call, ...args) => snapshot.run(call, ...args)
  }
  // Not an import: the core also runs where this module is missing.
  return process?.getBuiltinModule?.('node:async_hooks')?.AsyncLocalStorage?.snapshot?.() ?? here
}
