import { WebhookError } from '../errors.ts'
import { Leases } from './leases.ts'
import { type IdempotencyStore, type StoreSteps, withClaims } from './store.ts'

const stepNames = ['claim', 'renew', 'complete', 'release'] as const

/**
 * Makes an idempotency store from its four steps. Its claims are leases, which are renewed while an event is being
 * handled: another process can take over the keys of one that crashed.
 * @throws WebhookError `invalid_option`
 */
export function defineStore(steps: StoreSteps): IdempotencyStore {
  const missing = stepNames.find((name) => typeof steps?.[name] !== 'function')
  if (missing !== undefined) throw new WebhookError('invalid_option', `defineStore: ${missing} has to be a function`)
  return withClaims(steps, (options) => new Leases(steps, options))
}
