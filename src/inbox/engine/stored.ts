import type { MediaEvent } from '../../events/catalogue.ts'
import type { AcceptedEvent } from '../inbox.ts'
import type { DeadLetter, UnreadableDelivery } from '../reading.ts'

// The inboxes share this file. Durable inboxes store events as JSON. All of them limit the number of unreadable
// deliveries.

/** The number of unreadable deliveries that a durable inbox keeps: the newest ones. Each is as large as its body. */
export const maxUnreadable = 1_000

/**
 * Makes the key of an unreadable delivery's dead letter.
 * @param digest a hash of the body, since the sender repeats the same bytes
 */
export const unreadableKey = (digest: string): string => `unreadable:${digest}`

/**
 * Makes the dead letter of an unreadable delivery.
 * @param digest a hash of its body
 */
export function unreadableDeadLetter(unreadable: UnreadableDelivery, digest: string): DeadLetter {
  const { reason, receivedAt } = unreadable
  return {
    key: unreadableKey(digest),
    event: undefined,
    unreadable,
    receivedAt,
    attempts: 0,
    completed: [],
    failures: [{ handler: 'none', message: reason }],
    diedAt: receivedAt,
  }
}

/** Revives an event from JSON. Only `emittedAt` needs a conversion. The event is frozen, like a new one. */
export const reviveEvent = (event: MediaEvent): MediaEvent =>
  Object.freeze({
    ...event,
    emittedAt: event.emittedAt && new Date(event.emittedAt),
    qualities: Object.freeze(event.qualities),
    // An event of an earlier version has none.
    issues: Object.freeze(event.issues ?? []),
    payload: Object.freeze(event.payload),
  })

/** Revives an accepted event from JSON. */
export const reviveAccepted = ({ event, receivedAt, trace }: AcceptedEvent): AcceptedEvent => ({
  event: reviveEvent(event),
  receivedAt: new Date(receivedAt),
  trace,
})
