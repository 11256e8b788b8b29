import { reviveEvent, reviveFailedAttempts } from '../engine/stored.ts'
import type { DeadLetter } from '../reading.ts'

/** A dead letter as a row of its table. */
export interface DeadLetterRow {
  readonly dead_letter: string
  /** The body of an unreadable delivery in hexadecimal digits; `null` for an event, and where it was not asked for. */
  readonly body: string | null
}

/**
 * Writes a dead letter. The names of its completed handlers stand beside the rest, so that a statement can add those that the
 * row of the event has.
 */
export const writeDeadLetter = (deadLetter: DeadLetter): string =>
  `{"completed":${JSON.stringify(deadLetter.completed)},"letter":${writeLetter(deadLetter)}}`

/** Writes a dead letter without its completed handlers and its body. */
export function writeLetter({ completed, unreadable, ...letter }: DeadLetter): string {
  if (unreadable === undefined) return JSON.stringify(letter)
  const { body, ...delivery } = unreadable
  return JSON.stringify({ ...letter, unreadable: delivery })
}

/** @throws SyntaxError when the row is damaged */
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
    // An unreadable delivery has none.
    ...(failedAttempts && { failedAttempts: reviveFailedAttempts(failedAttempts) }),
    diedAt: new Date(rest.diedAt),
  }
}

const fromHex = (digits: string): Uint8Array =>
  Uint8Array.from(digits.match(/../g) ?? [], (digit) => Number.parseInt(digit, 16))
