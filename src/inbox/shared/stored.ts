import type { MediaEvent } from '../../events/catalogue.ts'
import type { AcceptedEvent } from '../inbox.ts'

// Shared by the durable inboxes, where events go through JSON and the number of unreadable deliveries is limited.

/** The number of unreadable deliveries that a durable inbox keeps: the newest ones. Each is as large as its body. */
export const maxUnreadable = 1_000

/**
 * Makes the key of an unreadable delivery's dead letter.
 * @param digest a hash of the body, since the sender repeats the same bytes
 */
export const unreadableKey = (digest: string): string => `unreadable:${digest}`

/** Revives an event that went through JSON: `emittedAt` is the one field that JSON has no type for. */
export const reviveEvent = (event: MediaEvent): MediaEvent =>
  event.emittedAt === undefined ? event : { ...event, emittedAt: new Date(event.emittedAt) }

/** Revives an accepted event that went through JSON. */
export const reviveAccepted = ({ event, receivedAt, trace }: AcceptedEvent): AcceptedEvent => ({
  event: reviveEvent(event),
  receivedAt: new Date(receivedAt),
  trace,
})
