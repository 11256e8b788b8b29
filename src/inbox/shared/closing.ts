import { WebhookError } from '../../errors.ts'
import type { CloseOptions } from '../inbox.ts'

/**
 * How long closing waits for events to finish, in ms.
 * @throws WebhookError `invalid_option`
 */
export function closingTime({ timeoutMs = 10_000 }: CloseOptions = {}): number {
  if (timeoutMs >= 0) return timeoutMs
  throw new WebhookError('invalid_option', 'close: timeoutMs has to be 0 or more')
}
