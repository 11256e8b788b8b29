import { WebhookError } from '../../errors.ts'
import type { ReadRefused } from '../inbox.ts'

/** Reads refused deliveries for an inbox that was started without a reader: nothing can be made of them. */
export const unreadable: ReadRefused = () => {
  throw new WebhookError('malformed', 'nothing reads it again')
}
