import { Leases } from './leases.ts'
import { type IdempotencyStore, type StoreSteps, withClaims } from './store.ts'

/**
 * Makes an idempotency store of its four steps. Its claims are leases, which are renewed while an event is being handled:
 * another process can take over the keys of one that crashed.
 */
export const defineStore = (steps: StoreSteps): IdempotencyStore =>
  withClaims(steps, (options) => new Leases(steps, options))
