import { WebhookError } from './errors.ts'
import type { AcceptedEvent, Inbox } from './inbox/inbox.ts'

type WaitUntil = ((promise: Promise<unknown>) => void) | undefined

/**
 * Stores the event in the inbox.
 * @throws WebhookError when it is not safe there: `overloaded`, `closing` or `unavailable`
 */
export async function accept(
  inbox: Inbox,
  accepted: AcceptedEvent,
  waitUntil: WaitUntil,
): Promise<'accepted' | 'duplicate'> {
  const acceptance = await available(() => inbox.accept(accepted, { waitUntil }))
  if (acceptance === 'overloaded') throw overloaded()
  return acceptance
}

/**
 * Has the event handled and waits for it, for `timeoutMs` at the most.
 * @throws WebhookError when it is not handled: `handler_failed`, `in_progress`, `overloaded`, `closing`, `unavailable`
 */
export async function acceptAndHandle(
  inbox: Required<Inbox>,
  accepted: AcceptedEvent,
  timeoutMs: number,
  waitUntil: WaitUntil,
): Promise<'handled' | 'duplicate'> {
  const handling = available(() => inbox.handleNow(accepted))
  waitUntil?.(handling.catch(() => {}))
  const result = await orAfter(timeoutMs, handling, 'in-progress' as const)
  if (result === 'overloaded') throw overloaded()
  if (result === 'failed') throw new WebhookError('handler_failed', 'a handler failed')
  if (result === 'in-progress') throw new WebhookError('in_progress', 'the event is still being handled')
  return result
}

async function available<T>(call: () => T): Promise<Awaited<T>> {
  try {
    return await call()
  } catch (error) {
    if (error instanceof WebhookError) throw error
    throw new WebhookError('unavailable', 'the inbox cannot be reached', { cause: error })
  }
}

function orAfter<T, Late>(ms: number, promise: Promise<T>, late: Late): Promise<T | Late> {
  return new Promise((resolve, reject) => {
    const timer = setTimeout(() => resolve(late), ms)
    promise.then(resolve, reject).finally(() => clearTimeout(timer))
  })
}

const overloaded = (): WebhookError => new WebhookError('overloaded', 'too many events are waiting')
