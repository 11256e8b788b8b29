import { WebhookError } from '../errors.ts'
import { Leases } from './leases.ts'
import { type IdempotencyStore, type StoreSteps, withClaims } from './store.ts'

const stepNames = ['claim', 'renew', 'complete', 'release'] as const

/**
 * Makes an idempotency store from its four steps. Claims are leases, renewed while an event is handled, so another
 * process can take over after a crash.
 * @throws WebhookError `invalid_option`
 */
export function defineStore(steps: StoreSteps): IdempotencyStore {
  const missing = stepNames.find((name) => typeof steps?.[name] !== 'function')
  if (missing !== undefined) throw new WebhookError('invalid_option', `defineStore: ${missing} must be a function`)
  return withClaims(steps, (options) => new Leases(steps, options))
}
