import { type Receiver, WebhookError } from '../../src/index.ts'

/** Fails at mount time instead of at the first delivery. */
export function checkReceiver(adapter: string, receiver: Partial<Pick<Receiver, 'receive'>> | undefined | null): void {
  if (typeof receiver?.receive === 'function') return
  const message = `${adapter}: give it a receiver; are the parentheses of createReceiver() missing?`
  throw new WebhookError('invalid_option', message)
}
