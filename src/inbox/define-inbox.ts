import { WebhookError } from '../errors.ts'
import type { InboxDefinition } from './inbox.ts'

/**
 * Defines an inbox that serves one receiver: opening it twice throws.
 * @throws WebhookError `invalid_option`
 */
export function defineInbox<Additions = unknown>(definition: InboxDefinition<Additions>): InboxDefinition<Additions> {
  if (typeof definition?.open !== 'function')
    throw new WebhookError('invalid_option', 'defineInbox: pass { name, open }')
  let isOpen = false
  // Not a spread: the definition may be the instance of a class.
  const { name, handlesNow, storage, localKeys, expects, ordersStrictly, limits, outlivesRequests } = definition
  const features = { handlesNow, storage, localKeys, expects, ordersStrictly, limits, outlivesRequests }
  return {
    name,
    ...(features as Pick<InboxDefinition, keyof typeof features>),
    open(host) {
      if (isOpen) throw new WebhookError('invalid_option', `${definition.name}: an inbox serves one receiver`)
      const inbox = definition.open(host)
      isOpen = true
      return inbox
    },
  }
}
