import type { MediaEvent } from '../events/media-service/catalogue.ts'
import type { AcceptedEvent, AcceptOptions, Inbox } from '../inbox/inbox.ts'
import type { MaybePromise } from '../internal/maybe-promise.ts'
import type { EventCounts, Success } from './acknowledgement.ts'
import { acceptAll } from './steps.ts'

/** How single events are accepted. */
export interface SingleEvents {
  /** Why nobody handles an event; `undefined` if somebody does. */
  unhandled(event: MediaEvent): 'test' | 'ignored' | undefined
  toAccepted(event: MediaEvent): AcceptedEvent
  /** With `ack: 'handled'`: accepts an event and waits for its handlers. */
  handle?(event: MediaEvent): MaybePromise<Success>
  /** Called with what became of an event. */
  ended(event: MediaEvent, outcome: Success): void
}

/**
 * Accepts the events of one delivery: in one commit, if the inbox can.
 * @throws WebhookError as for a single event; with a commit none is stored then
 */
export async function acceptList(
  events: readonly MediaEvent[],
  single: SingleEvents,
  inbox: Inbox,
  waitUntil: AcceptOptions['waitUntil'],
): Promise<EventCounts> {
  const outcomes: Success[] = []
  const wanted = new Map<string, MediaEvent>()
  for (const event of events) {
    const unhandled = single.unhandled(event)
    if (unhandled !== undefined) outcomes.push(unhandled)
    else if (wanted.has(event.key)) outcomes.push('duplicate')
    else wanted.set(event.key, event)
  }
  const each = [...wanted.values()]
  const { handle } = single
  const accepted = handle
    ? await Promise.all(each.map(handle))
    : await acceptAll(inbox, each.map(single.toAccepted), waitUntil)
  for (const [index, event] of each.entries()) single.ended(event, accepted[index] as Success)
  return countsOf([...outcomes, ...accepted])
}

function countsOf(outcomes: readonly Success[]): EventCounts {
  const counts: Partial<Record<Success, number>> = {}
  for (const outcome of outcomes) counts[outcome] = (counts[outcome] ?? 0) + 1
  return counts
}
