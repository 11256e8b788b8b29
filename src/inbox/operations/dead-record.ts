import type { DeadEvent, EventRecord } from '../reading.ts'

/** Shows a dead letter as an event of its inbox. */
export function deadRecord({ failures, diedAt, ...deadLetter }: DeadEvent): EventRecord {
  const { event, attempts, failedAttempts = [{ number: attempts, failures, failedAt: diedAt }] } = deadLetter
  return { ...deadLetter, type: event.type, mediaId: event.mediaId, state: 'dead', failedAttempts, endedAt: diedAt }
}
