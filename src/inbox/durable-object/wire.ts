import { fromBase64, toBase64 } from '../../internal/base64.ts'
import { toHex } from '../../internal/crypto/encoding.ts'
import { reviveEvent, reviveFailedAttempts } from '../engine/stored.ts'
import type { DeadLetter, EventRecord, KeysOptions, OpenExpectation, UnreadableDelivery } from '../reading.ts'
import { readDeadLetter, writeDeadLetter } from '../sql/dead-letter-row.ts'
import type { KeysPage } from '../sql/dead-letters.ts'
import type { PlacedPage } from '../sql/events.ts'

// Wire form between the Worker and its objects: JSON, with bytes in base64.

export interface PageRange {
  readonly limit?: number
  readonly offset?: number
}

export interface KeysQuery extends KeysOptions {
  readonly after: KeysPage['next'] & {}
}

export interface WireDeadLetter {
  /** JSON of everything except the body. */
  readonly text: string
  readonly body: string | null
}

export function packDeadLetter(deadLetter: DeadLetter): WireDeadLetter {
  const body = deadLetter.unreadable?.body
  return { text: writeDeadLetter(deadLetter), body: body ? toHex(body) : null }
}

export const unpackDeadLetter = ({ text, body }: WireDeadLetter): DeadLetter =>
  readDeadLetter({ dead_letter: text, body })

export type WireUnreadable = Omit<UnreadableDelivery, 'receivedAt' | 'body'> & Record<'receivedAt' | 'body', string>

export const packUnreadable = ({ receivedAt, body, ...unreadable }: UnreadableDelivery): WireUnreadable => ({
  ...unreadable,
  receivedAt: receivedAt.toISOString(),
  body: toBase64(body),
})

export const unpackUnreadable = ({ receivedAt, body, ...unreadable }: WireUnreadable): UnreadableDelivery => ({
  ...unreadable,
  receivedAt: new Date(receivedAt),
  body: fromBase64(body),
})

export function unpackRecord({
  event,
  receivedAt,
  failedAttempts,
  dueAt,
  startedAt,
  endedAt,
  ...record
}: EventRecord): EventRecord {
  return {
    ...record,
    ...(event !== undefined && { event: reviveEvent(event) }),
    receivedAt: new Date(receivedAt),
    failedAttempts: reviveFailedAttempts(failedAttempts),
    ...(dueAt !== undefined && { dueAt: new Date(dueAt) }),
    ...(startedAt !== undefined && { startedAt: new Date(startedAt) }),
    ...(endedAt !== undefined && { endedAt: new Date(endedAt) }),
  }
}

export const unpackExpectation = ({ beganAt, dueAt, ...open }: OpenExpectation): OpenExpectation => ({
  ...open,
  beganAt: new Date(beganAt),
  dueAt: new Date(dueAt),
})

export const unpackPage = ({ found, ...page }: PlacedPage): PlacedPage => ({
  ...page,
  found: found.map(({ id, record }) => ({ id, record: unpackRecord(record) })),
})
