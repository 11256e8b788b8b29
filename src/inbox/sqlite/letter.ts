import type { DeadEvent, DeadLetter, RefusedDelivery } from '../inbox.ts'
import { reviveEvent, shortHash } from './events.ts'

/** A dead letter as its table holds it. */
export interface LetterRow {
  /** null for a refused delivery. */
  readonly event_id: number | null
  /** JSON of all but the body. */
  readonly letter: string
  /** That of a refused delivery; each driver reads bytes as something else. */
  readonly body: Uint8Array | ArrayBuffer | null
}

export const eventRow = (id: number, letter: DeadEvent): LetterRow => ({
  event_id: id,
  letter: JSON.stringify(letter),
  body: null,
})

/** The letter of a refused delivery. The key is its body's, since the sender repeats what was refused. */
export function refusedLetter(refused: RefusedDelivery): DeadLetter {
  const { reason, receivedAt, body } = refused
  return {
    key: `refused:${shortHash(body)}`,
    event: undefined,
    refused,
    receivedAt,
    attempts: 0,
    completed: [],
    failures: [{ handler: 'none', message: reason }],
    diedAt: receivedAt,
  }
}

export function refusedRow(letter: DeadLetter, { body, ...refused }: RefusedDelivery): LetterRow {
  return { event_id: null, letter: JSON.stringify({ ...letter, refused }), body }
}

export function toLetter({ letter, body }: LetterRow): DeadLetter {
  const { event, refused, receivedAt: text, diedAt, ...rest } = JSON.parse(letter)
  const receivedAt = new Date(text)
  const dead = { ...rest, receivedAt, diedAt: new Date(diedAt) }
  return body === null
    ? { ...dead, event: reviveEvent(event) }
    : { ...dead, event: undefined, refused: { ...refused, receivedAt, body: new Uint8Array(body) } }
}
