import { contentHeaders } from '../internal/content-headers.ts'
import type { MaybePromise } from '../internal/maybe-promise.ts'
import type { Acknowledgement, EventCounts, Success } from '../receiver/delivery.ts'
import type { MediaEvent } from './media-service/catalogue.ts'

/** How the receiver accepts events. */
export interface EventSink {
  /** Why nobody handles an event; `undefined` if somebody does. */
  unhandled(event: MediaEvent): 'test' | 'ignored' | undefined
  accept(event: MediaEvent): MaybePromise<Success>
  /** Accepts all or none. `undefined` if that takes more than one step. */
  acceptAll(events: readonly MediaEvent[]): Promise<readonly Success[]> | undefined
  /** Called with what became of an event. */
  accepted(event: MediaEvent, outcome: Success): void
}

/**
 * Accepts the events of one delivery: in one step, if that is possible. Otherwise one after the other: if that fails halfway,
 * those before are duplicates when the sender repeats the delivery.
 * @throws WebhookError as for a single event
 */
export async function acceptList(events: readonly MediaEvent[], sink: EventSink): Promise<Acknowledgement> {
  const outcomes: Success[] = []
  const wanted = new Map<string, MediaEvent>()
  for (const event of events) {
    const unhandled = sink.unhandled(event)
    if (unhandled !== undefined) outcomes.push(unhandled)
    else if (wanted.has(event.key)) outcomes.push('duplicate')
    else wanted.set(event.key, event)
  }
  const each = [...wanted.values()]
  const accepted = [...((await sink.acceptAll(each)) ?? [])]
  for (const [index, event] of each.entries()) {
    const outcome = accepted[index] ?? (await sink.accept(event))
    sink.accepted(event, outcome)
    outcomes.push(outcome)
  }
  return acknowledge(outcomes)
}

/** What a delivery is answered: the best that became of its events, and how many had each outcome. */
function acknowledge(outcomes: readonly Success[]): Acknowledgement {
  const outcome = best.find((each) => outcomes.includes(each)) ?? 'ignored'
  const counts: Partial<Record<Success, number>> = {}
  for (const each of outcomes) counts[each] = (counts[each] ?? 0) + 1
  const events: EventCounts | undefined = outcomes.length > 0 ? counts : undefined
  const body = JSON.stringify({ status: outcome, events })
  return { outcome, status: 200, headers: contentHeaders('application/json', body), body, events }
}

const best = ['handled', 'accepted', 'duplicate', 'test'] as const
