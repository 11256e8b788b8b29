import { sha256 } from '#crypto'
import type { MediaEvent } from '../../events/media-service/catalogue.ts'
import type { AcceptedEvent } from '../inbox.ts'
import type { DeadLetter, EventRecord, FailedAttempt, HandlerFailure, UnreadableDelivery } from '../reading.ts'

// The inboxes share this file. Durable inboxes store events as JSON. All of them limit the number of unreadable
// deliveries, and of the failed attempts of an event.

/** The number of unreadable deliveries that a durable inbox keeps: the newest ones. Each is as large as its body. */
export const maxUnreadable = 1_000

/**
 * Makes the key of an unreadable delivery's dead letter: a hash of its body and its kept headers, since the sender repeats both.
 * The principal keeps two tenants apart that send the same bytes.
 */
export async function unreadableKey({
  body,
  headers,
  principal,
}: Pick<UnreadableDelivery, 'body' | 'headers' | 'principal'>): Promise<string> {
  const ofBody = await sha256(body as Uint8Array<ArrayBuffer>)
  const digest = headers === undefined ? ofBody : await sha256(ofBody + JSON.stringify(headers))
  return ['unreadable', digest.slice(0, 32), ...(principal === undefined ? [] : [principal])].join(':')
}

/** Makes the dead letter of an unreadable delivery. */
export function unreadableDeadLetter(unreadable: UnreadableDelivery, key: string): DeadLetter {
  const { reason, receivedAt } = unreadable
  return {
    key,
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

/** The `awaited` of an overdue event's record. */
export function awaitedBy(event: MediaEvent): Pick<EventRecord, 'awaited'> {
  const { awaited } = (event as { readonly overdue?: Pick<EventRecord, 'awaited'> }).overdue ?? {}
  return awaited === undefined ? {} : { awaited }
}

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
): readonly FailedAttempt[] =>
  [...withoutStacks(earlier), { number, failures, failedAt: new Date() }].slice(-maxFailedAttempts)

/** Leaves out the stacks: an event keeps those of its newest failed attempt only. */
export const withoutStacks = (attempts: readonly FailedAttempt[]): readonly FailedAttempt[] =>
  attempts.map((attempt) => ({ ...attempt, failures: attempt.failures.map(withoutStack) }))

/** Leaves out the stack, which is kept once. */
export const withoutStack = ({ stack: _, ...failure }: HandlerFailure): HandlerFailure => failure

/** Revives failed attempts from JSON. */
export const reviveFailedAttempts = (attempts: readonly FailedAttempt[] = []): readonly FailedAttempt[] =>
  attempts.map((attempt) => ({ ...attempt, failedAt: new Date(attempt.failedAt) }))
