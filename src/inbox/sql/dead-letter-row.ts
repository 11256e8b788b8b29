import { reviveEvent, reviveFailedAttempts } from '../engine/stored.ts'
import type { DeadLetter } from '../reading.ts'

export interface DeadLetterRow {
  readonly dead_letter: string
  /** Body of an unreadable delivery in hex. `null` for an event, or if not selected. */
  readonly body: string | null
}

/** Serialises a dead letter. Completed handlers are apart, so a statement can add those in the event's row. */
export const writeDeadLetter = (deadLetter: DeadLetter): string =>
  `{"completed":${JSON.stringify(deadLetter.completed)},"letter":${writeLetter(deadLetter)}}`

export function writeLetter({ completed, unreadable, ...letter }: DeadLetter): string {
  if (unreadable === undefined) return JSON.stringify(letter)
  const { body, ...delivery } = unreadable
  return JSON.stringify({ ...letter, unreadable: delivery })
}

export function readDeadLetter({ dead_letter, body }: DeadLetterRow): DeadLetter {
  const { completed, letter } = JSON.parse(dead_letter)
  const { event, unreadable, failedAttempts, ...rest } = letter
  const receivedAt = new Date(rest.receivedAt)
  return {
    ...rest,
    completed,
    event: event && reviveEvent(event),
    receivedAt,
    ...(unreadable && { unreadable: { ...unreadable, receivedAt, body: fromHex(body ?? '') } }),
    ...(failedAttempts && { failedAttempts: reviveFailedAttempts(failedAttempts) }),
    diedAt: new Date(rest.diedAt),
  }
}

const fromHex = (digits: string): Uint8Array =>
  Uint8Array.from(digits.match(/../g) ?? [], (digit) => Number.parseInt(digit, 16))
