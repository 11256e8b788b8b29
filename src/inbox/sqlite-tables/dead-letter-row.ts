import { reviveFailedAttempts } from '../engine/failed-attempts.ts'
import { reviveEvent } from '../engine/stored.ts'
import type { DeadEvent, DeadLetter, UnreadableDelivery } from '../reading.ts'

/** A dead letter as a row of its table. */
export interface DeadLetterRow {
  /** null for an unreadable delivery. */
  readonly event_id: number | null
  /** JSON of everything except the body. */
  readonly dead_letter: string
  /** An unreadable delivery's body. node:sqlite reads a Uint8Array, libsql an ArrayBuffer or Buffer. */
  readonly body: Uint8Array | ArrayBuffer | null
}

export const eventRow = (id: number, deadLetter: DeadEvent): DeadLetterRow => ({
  event_id: id,
  dead_letter: JSON.stringify(deadLetter),
  body: null,
})

export function unreadableRow(deadLetter: DeadLetter, { body, ...unreadable }: UnreadableDelivery): DeadLetterRow {
  return { event_id: null, dead_letter: JSON.stringify({ ...deadLetter, unreadable }), body }
}

export function toDeadLetter({ dead_letter, body }: DeadLetterRow): DeadLetter {
  const { event, unreadable, receivedAt: text, diedAt, failedAttempts, ...rest } = JSON.parse(dead_letter)
  const receivedAt = new Date(text)
  const deadLetter = {
    ...rest,
    receivedAt,
    diedAt: new Date(diedAt),
    // Earlier releases did not store them.
    ...(failedAttempts !== undefined && { failedAttempts: reviveFailedAttempts(failedAttempts) }),
  }
  return body === null
    ? { ...deadLetter, event: reviveEvent(event) }
    : { ...deadLetter, event: undefined, unreadable: { ...unreadable, receivedAt, body: new Uint8Array(body) } }
}
