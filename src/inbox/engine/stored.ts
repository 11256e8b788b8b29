import type { MediaEvent } from '../../events/media-service/catalogue.ts'
import type { AcceptedEvent } from '../inbox.ts'
import type { DeadLetter, FailedAttempt, HandlerFailure, UnreadableDelivery } from '../reading.ts'

// The inboxes share this file. Durable inboxes store events as JSON. All of them limit the number of unreadable
// deliveries, and of the failed attempts of an event.

/** The number of unreadable deliveries that a durable inbox keeps: the newest ones. Each is as large as its body. */
export const maxUnreadable = 1_000

/**
 * Makes the key of an unreadable delivery's dead letter.
 * @param digest a hash of the body, since the sender repeats the same bytes
 * @param principal keeps two tenants apart that send the same bytes
 */
export const unreadableKey = (digest: string, principal: string | undefined): string =>
  principal === undefined ? `unreadable:${digest}` : `unreadable:${digest}:${principal}`

/**
 * Makes the dead letter of an unreadable delivery.
 * @param digest a hash of its body
 */
export function unreadableDeadLetter(unreadable: UnreadableDelivery, digest: string): DeadLetter {
  const { reason, receivedAt, principal } = unreadable
  return {
    key: unreadableKey(digest, principal),
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
    issues: Object.freeze(event.issues),
    payload: Object.freeze(event.payload),
  })

/** Revives an accepted event from JSON. */
export const reviveAccepted = ({ event, receivedAt, trace }: AcceptedEvent): AcceptedEvent => ({
  event: reviveEvent(event),
  receivedAt: new Date(receivedAt),
  trace,
})

/** The maximum number of failed attempts that an event keeps. */
export const maxFailedAttempts = 20

/** Adds a failed attempt. */
export const withFailure = (
  earlier: readonly FailedAttempt[],
  number: number,
  failures: readonly HandlerFailure[],
): readonly FailedAttempt[] => [...earlier, { number, failures, failedAt: new Date() }].slice(-maxFailedAttempts)

/** Revives failed attempts from JSON. */
export const reviveFailedAttempts = (attempts: readonly FailedAttempt[] = []): readonly FailedAttempt[] =>
  attempts.map((attempt) => ({ ...attempt, failedAt: new Date(attempt.failedAt) }))
