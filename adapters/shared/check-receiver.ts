import { type Receiver, WebhookError } from '../../src/index.ts'

/**
 * Checks the receiver of an adapter when it is mounted: without this check, a missing receiver would show only at the
 * first delivery.
 * @param adapter the name of the adapter, for the message
 * @throws WebhookError `invalid_option`
 */
export function checkReceiver(adapter: string, receiver: Partial<Pick<Receiver, 'receive'>> | undefined | null): void {
  if (typeof receiver?.receive === 'function') return
  const message = `${adapter}: give it a receiver; are the parentheses of createReceiver() missing?`
  throw new WebhookError('invalid_option', message)
}
