import { WebhookError } from '../../errors.ts'
import type { InboxDefinition } from '../inbox.ts'

/** Makes the definition of an inbox that serves one receiver: it cannot be opened twice. */
export function defineInbox(definition: InboxDefinition): InboxDefinition {
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
