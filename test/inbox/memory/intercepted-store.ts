import { defineStore } from '../../../src/idempotency/define-store.ts'
import { lruStore } from '../../../src/idempotency/lru.ts'
import type { IdempotencyStore } from '../../../src/idempotency/store.ts'

type Method = 'claim' | 'renew' | 'complete' | 'release'

/** Stands between an inbox and its store, and decides if and when a call is carried out. */
export type Interceptor = (carryOut: () => Promise<unknown>, key: string) => unknown

/**
 * An asynchronous store, like one on another machine, whose calls a test can make fail or wait. Two of them around one
 * `shared` store are two machines.
 */
export function interceptedStore(shared: IdempotencyStore = lruStore({ now: Date.now })) {
  const calls: string[] = []
  const owners: string[] = []
  const intercept: Partial<Record<Method, Interceptor>> = {}
  const wrap =
    (method: Method) =>
    async (key: string, owner: string, leaseMs = 0): Promise<never> => {
      calls.push(`${method} ${key}`)
      owners.push(owner)
      const carryOut = async () => shared[method](key, owner, leaseMs)
      return (await (intercept[method] ?? ((call) => call()))(carryOut, key)) as never
    }
  const store = defineStore({
    claim: wrap('claim'),
    renew: wrap('renew'),
    complete: wrap('complete'),
    release: wrap('release'),
  })
  const count = (call: string) => calls.filter((made) => made === call).length
  return { store, shared, intercept, calls, owners, count }
}

export const down: Interceptor = async () => {
  throw new Error('connection refused')
}

/** The store carries out the call, and its answer is lost. */
export const answerLost: Interceptor = async (carryOut) => {
  await carryOut()
  throw new Error('connection reset')
}

/** Holds calls back until it is opened. */
export function gate() {
  let open = () => {}
  const opened = new Promise<void>((resolve) => {
    open = resolve
  })
  const interceptor: Interceptor = (carryOut) => opened.then(carryOut)
  return { open, interceptor }
}
