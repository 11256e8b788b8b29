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
  return {
    ...definition,
    open(host) {
      if (isOpen) throw new WebhookError('invalid_option', `${definition.name}: an inbox serves one receiver`)
      isOpen = true
      return definition.open(host)
    },
  }
}
