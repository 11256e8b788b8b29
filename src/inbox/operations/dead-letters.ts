import { awaitedBy } from '../engine/stored.ts'
import type { AcceptedEvent, InboxHost } from '../inbox.ts'
import type { DeadEvent, DeadLetters, EventRecord, UnreadableDelivery } from '../reading.ts'

export const noDeadLetters: DeadLetters = {
  list: () => [],
  get: () => undefined,
  replay: () => false,
  discard: () => false,
}

/** What parsing an unreadable delivery again needs of the receiver. */
export type ReplayingReceiver = Pick<InboxHost, 'parse' | 'handlersOf'>

export interface ParsedEvent extends AcceptedEvent {
  /** Handlers it owes. `undefined` if none: it then becomes a dead letter that names this cause. */
  readonly owed: readonly string[] | undefined
}

/** @throws WebhookError `malformed` if it is still unreadable */
export async function parseAgain(
  { parse, handlersOf }: ReplayingReceiver,
  unreadable: UnreadableDelivery,
): Promise<readonly ParsedEvent[]> {
  const { receivedAt, trace } = unreadable
  return (await parse(unreadable)).map((event) => {
    const owed = handlersOf(event)
    return { event, receivedAt, trace, owed: owed.length > 0 ? owed : undefined }
  })
}

/** Converts a dead letter to the record that `events` lists. */
export function deadRecord({ failures, diedAt, ...deadLetter }: DeadEvent): EventRecord {
  const { event, attempts, failedAttempts = [{ number: attempts, failures, failedAt: diedAt }] } = deadLetter
  const { type, mediaId } = event
  return { ...deadLetter, ...awaitedBy(event), type, mediaId, state: 'dead', failedAttempts, endedAt: diedAt }
}
