import type { MediaEvent } from '../../events/media-service/catalogue.ts'
import { reviveEvent, reviveFailedAttempts, unreadableDeadLetter, withoutStack } from '../engine/stored.ts'
import type { DeadLetter, UnreadableDelivery } from '../reading.ts'
import type { Dialect } from './database.ts'
import type { EventRow } from './event-row.ts'
import { readHead } from './head.ts'

/** The row of a dead letter. `event` is null for an unreadable delivery. */
export interface DeadLetterRow
  extends Pick<EventRow, 'id' | 'head' | 'event' | 'received' | 'attempts' | 'completed' | 'failed' | 'trace'> {
  readonly died: number | string
  /** Its `died_at` as JSON, in the precision of the column. */
  readonly place: string
  /** In hex. */
  readonly body: string | null
}

/** Columns that {@link readDeadLetter} reads. */
export const deadLetterColumns = ({ json, ms, hex, names }: Dialect): string =>
  [
    'id, attempts',
    ...['head', 'event', 'failed', 'trace'].map((name) => `${json(name)} AS ${name}`),
    `${names('completed')} AS completed`,
    `${ms('received_at')} AS received, ${ms('died_at')} AS died, ${json('died_at')} AS place, ${hex('body')} AS body`,
  ].join()

/** @throws if the row is damaged */
export function readDeadLetter(row: DeadLetterRow): DeadLetter {
  if (row.event === null) return readUnreadable(row)
  const event = reviveEvent(JSON.parse(row.event) as MediaEvent)
  const failedAttempts = reviveFailedAttempts(row.failed === null ? [] : JSON.parse(row.failed))
  return {
    key: event.key,
    event,
    receivedAt: new Date(Number(row.received)),
    attempts: row.attempts,
    completed: JSON.parse(row.completed),
    failures: failedAttempts.at(-1)?.failures.map(withoutStack) ?? [],
    failedAttempts,
    diedAt: new Date(Number(row.died)),
    ...(row.trace !== null && { trace: JSON.parse(row.trace) }),
  }
}

/** What the head of an unreadable delivery has: everything but its body. */
type UnreadableHead = { readonly key: string } & Omit<UnreadableDelivery, 'body' | 'receivedAt'> &
  Record<'receivedAt', string>

export const writeUnreadableHead = (key: string, { body: _, ...delivery }: UnreadableDelivery): string =>
  JSON.stringify({ key, ...delivery })

function readUnreadable({ head, body }: DeadLetterRow): DeadLetter {
  const { key, receivedAt, ...delivery } = JSON.parse(head) as UnreadableHead
  return unreadableDeadLetter({ ...delivery, receivedAt: new Date(receivedAt), body: fromHex(body ?? '') }, key)
}

const fromHex = (digits: string): Uint8Array =>
  Uint8Array.from(digits.match(/../g) ?? [], (digit) => Number.parseInt(digit, 16))

/** A dead letter's row without its payload, which can be large. */
export interface DeadHeadRow extends Pick<DeadLetterRow, 'id' | 'head' | 'died' | 'place'> {
  /** Null for an unreadable delivery. */
  readonly media: string | null
}

/** Columns that {@link readDeadHead} reads. */
export const deadHeadColumns = ({ json, ms }: Dialect): string =>
  `id, media, ${json('head')} AS head, ${ms('died_at')} AS died, ${json('died_at')} AS place`

export interface ListedKey {
  readonly key: string
  /** `undefined` for an unreadable delivery. */
  readonly type: string | undefined
  readonly diedAt: Date
}

/** @throws if the row is damaged */
export function readDeadHead({ media, head, died }: DeadHeadRow): ListedKey {
  const { key, type } = media === null ? { key: JSON.parse(head).key, type: undefined } : readHead(head)
  return { key, type, diedAt: new Date(Number(died)) }
}

/** Reads rows. Skips damaged ones. */
export const undamaged = <Row, Read>(rows: readonly Row[], read: (row: Row) => Read): Read[] =>
  rows.flatMap((row) => {
    try {
      return [read(row)]
    } catch {
      return []
    }
  })
