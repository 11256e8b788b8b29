import { WebhookError } from '../errors.ts'
import type { InboxDefinition } from './inbox.ts'

/**
 * Makes the definition of an inbox that serves one receiver: it cannot be opened twice.
 * @throws WebhookError `invalid_option`
 */
export function defineInbox<Additions = unknown>(definition: InboxDefinition<Additions>): InboxDefinition<Additions> {
  if (typeof definition?.open !== 'function')
    throw new WebhookError('invalid_option', 'defineInbox: give it { name, open }')
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
