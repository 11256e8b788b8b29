import { awaitedBy } from '../engine/stored.ts'
import type { AcceptedEvent, InboxHost } from '../inbox.ts'
import type { DeadEvent, DeadLetters, EventRecord, UnreadableDelivery } from '../reading.ts'

/** The dead letters of an inbox that keeps none. */
export const noDeadLetters: DeadLetters = {
  list: () => [],
  get: () => undefined,
  replay: () => false,
  discard: () => false,
}

/** The part of a receiver that replays unreadable deliveries. */
export type ReplayingReceiver = Pick<InboxHost, 'parse' | 'handlersOf'>

/** The event that was parsed from an unreadable delivery. */
export interface ParsedEvent extends AcceptedEvent {
  /** The names of the handlers that it owes. `undefined` if there is none, which ends in a dead letter that says so. */
  readonly owed: readonly string[] | undefined
}

/** Parses an unreadable delivery again. Rejects, with a WebhookError `malformed`, if it still cannot be parsed. */
export async function parseAgain(
  { parse, handlersOf }: ReplayingReceiver,
  unreadable: UnreadableDelivery,
): Promise<ParsedEvent> {
  const event = await parse(unreadable)
  const owed = handlersOf(event)
  return { event, receivedAt: unreadable.receivedAt, owed: owed.length > 0 ? owed : undefined }
}

/** Shows a dead letter as an event of its inbox. */
export function deadRecord({ failures, diedAt, ...deadLetter }: DeadEvent): EventRecord {
  const { event, attempts, failedAttempts = [{ number: attempts, failures, failedAt: diedAt }] } = deadLetter
  const { type, mediaId } = event
  return { ...deadLetter, ...awaitedBy(event), type, mediaId, state: 'dead', failedAttempts, endedAt: diedAt }
}
