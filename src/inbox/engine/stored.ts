import { sha256 } from '#crypto'
import { deepFreeze } from '../../events/json.ts'
import type { MediaEvent } from '../../events/media-service/catalogue.ts'
import type { AcceptedEvent } from '../inbox.ts'
import type { DeadLetter, EventRecord, FailedAttempt, HandlerFailure, UnreadableDelivery } from '../reading.ts'

// How inboxes store events and dead letters. Durable ones use JSON.

/** Unreadable deliveries kept by a durable inbox, newest first. Each is as large as its body. */
export const maxUnreadable = 1_000

/**
 * Makes an unreadable delivery's key: a hash of all that can decide its event key. The sender repeats that. The
 * principal keeps tenants apart that send the same bytes.
 */
export async function unreadableKey({
  body,
  eventId,
  headers = {},
  url,
  principal,
}: Omit<UnreadableDelivery, 'reason' | 'receivedAt'>): Promise<string> {
  const sent = Object.entries(headers).filter(([, value]) => value !== null)
  const digest = await sha256(JSON.stringify([await sha256(body as Uint8Array<ArrayBuffer>), eventId, sent, url]))
  return ['unreadable', digest.slice(0, 32), ...(principal === undefined ? [] : [principal])].join(':')
}

export function unreadableDeadLetter(unreadable: UnreadableDelivery, key: string): DeadLetter {
  const { reason, receivedAt, trace } = unreadable
  return {
    key,
    event: undefined,
    unreadable,
    receivedAt,
    attempts: 0,
    completed: [],
    failures: [{ handler: 'none', message: reason }],
    diedAt: receivedAt,
    ...(trace && { trace }),
  }
}

/** Revives an event from JSON. Frozen, like a new one. */
export const reviveEvent = (event: MediaEvent): MediaEvent =>
  Object.freeze({
    ...event,
    emittedAt: event.emittedAt && new Date(event.emittedAt),
    qualities: Object.freeze(event.qualities),
    issues: Object.freeze(event.issues),
    payload: deepFreeze(event.payload),
  })

export function awaitedBy(event: MediaEvent): Pick<EventRecord, 'awaited'> {
  const { awaited } = (event as { readonly overdue?: Pick<EventRecord, 'awaited'> }).overdue ?? {}
  return awaited === undefined ? {} : { awaited }
}

export const reviveAccepted = ({ event, receivedAt, trace }: AcceptedEvent): AcceptedEvent => ({
  event: reviveEvent(event),
  receivedAt: new Date(receivedAt),
  trace,
})

export const maxFailedAttempts = 20

export const withFailure = (
  earlier: readonly FailedAttempt[],
  number: number,
  failures: readonly HandlerFailure[],
): readonly FailedAttempt[] =>
  [...withoutStacks(earlier), { number, failures, failedAt: new Date() }].slice(-maxFailedAttempts)

/** Drops the stacks: an event keeps only those of its newest failed attempt. */
export const withoutStacks = (attempts: readonly FailedAttempt[]): readonly FailedAttempt[] =>
  attempts.map((attempt) => ({ ...attempt, failures: attempt.failures.map(withoutStack) }))

export const withoutStack = ({ stack: _, ...failure }: HandlerFailure): HandlerFailure => failure

export const reviveFailedAttempts = (attempts: readonly FailedAttempt[] = []): readonly FailedAttempt[] =>
  attempts.map((attempt) => ({ ...attempt, failedAt: new Date(attempt.failedAt) }))
