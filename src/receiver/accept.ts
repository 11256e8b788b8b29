import { WebhookError } from '../errors.ts'
import type { Acceptance, AcceptedEvent, AcceptOptions, ImmediateResult, Inbox } from '../inbox/inbox.ts'
import { isPromise, type MaybePromise } from '../internal/maybe-promise.ts'
import { within } from '../internal/timers.ts'

/**
 * Stores the event in the inbox.
 * @throws WebhookError when it is not safe there: `overloaded`, `in_progress`, `closing` or `unavailable`
 */
export function accept(
  inbox: Inbox,
  accepted: AcceptedEvent,
  waitUntil: AcceptOptions['waitUntil'],
): MaybePromise<'accepted' | 'duplicate'> {
  try {
    const acceptance = inbox.accept(accepted, { waitUntil })
    return isPromise(acceptance) ? acceptance.then(checkRoom, unavailable) : checkRoom(acceptance)
  } catch (error) {
    return unavailable(error)
  }
}

function checkRoom(acceptance: Acceptance): 'accepted' | 'duplicate' {
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
  waitUntil: AcceptOptions['waitUntil'],
): Promise<'handled' | 'duplicate'> {
  const handling = handleNow(inbox, accepted)
  waitUntil?.(handling.catch(() => {}))
  const result = await within(timeoutMs, handling, () => 'in-progress' as const)
  if (result === 'overloaded') throw overloaded()
  if (result === 'failed') throw new WebhookError('handler_failed', 'a handler failed')
  if (result === 'in-progress') throw new WebhookError('in_progress', 'the event is still being handled')
  return result
}

async function handleNow(inbox: Required<Inbox>, accepted: AcceptedEvent): Promise<ImmediateResult> {
  try {
    return await inbox.handleNow(accepted)
  } catch (error) {
    return unavailable(error)
  }
}

function unavailable(error: unknown): never {
  if (error instanceof WebhookError) throw error
  throw new WebhookError('unavailable', 'the inbox cannot be reached', { cause: error })
}

const overloaded = (): WebhookError => new WebhookError('overloaded', 'too many events are waiting')
