import type { DeadEvent, EventRecord } from '../reading.ts'

/** Shows a dead letter as an event of its inbox. */
export function deadRecord({ failures, diedAt, failedAttempts, ...deadLetter }: DeadEvent): EventRecord {
  const { type, mediaId } = deadLetter.event
  const lastFailed = [{ number: deadLetter.attempts, failures, failedAt: diedAt }]
  return { ...deadLetter, type, mediaId, state: 'dead', failedAttempts: failedAttempts ?? lastFailed, endedAt: diedAt }
}
