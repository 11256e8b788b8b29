import { fromBase64 } from '../../internal/base64.ts'
import { reviveEvent, reviveFailedAttempts } from '../engine/stored.ts'
import type { DeadEvent, DeadLetter, TraceCarrier, UnreadableDelivery } from '../reading.ts'

/** The JSON of a dead letter that is an event. */
interface StoredDeadEvent extends Pick<DeadEvent, 'event' | 'completed'> {
  readonly receivedAt: number
  /** Absent in version 1. */
  readonly trace?: TraceCarrier | null
  /** The names of the handlers that it owes. Absent before version 3. */
  readonly owed?: readonly string[] | null
  /** The number of its releases when it is replayed. Absent before version 6. */
  readonly releases?: number
  /** Version 1 has no failed attempts. */
  readonly end: Pick<DeadEvent, 'key' | 'attempts' | 'failures' | 'failedAttempts'> & { readonly diedAt: string }
}

/** The JSON of an unreadable delivery. Its body has a column of its own. */
interface StoredUnreadable extends Pick<UnreadableDelivery, 'reason' | 'eventId' | 'principal'> {
  readonly key: string
  readonly receivedAt: string
}

/** A dead letter as a row of its table. */
export interface DeadLetterRow {
  /** The id of the dead letter. Its name is not `id`, because Postgres would sort by the text. */
  readonly place: string
  readonly dead_letter: string
  /** In base64. */
  readonly body: string | null
}

/** The columns that Postgres returns. They are texts, because the parsers of the pool can be the user's. */
export const columns = "id::text AS place, dead_letter::text, encode(body, 'base64') AS body"

/** The columns without the body. The body can be large. */
export const columnsWithoutBody = 'id::text AS place, dead_letter::text, NULL AS body'

/** Reads what a dead letter keeps only for its replay. */
export function forReplay({ dead_letter: text }: DeadLetterRow): Required<Pick<StoredDeadEvent, 'owed' | 'releases'>> {
  const { owed = null, releases = 1 } = JSON.parse(text) as StoredDeadEvent
  return { owed, releases }
}

/** Makes a dead letter of its row. */
export function toDeadLetter({ dead_letter: text, body }: DeadLetterRow): DeadLetter {
  const stored = JSON.parse(text) as StoredDeadEvent | StoredUnreadable
  if ('event' in stored) {
    const { event, completed, receivedAt, trace, end } = stored
    return {
      ...end,
      event: reviveEvent(event),
      completed,
      receivedAt: new Date(Math.round(receivedAt)),
      ...(end.failedAttempts && { failedAttempts: reviveFailedAttempts(end.failedAttempts) }),
      diedAt: new Date(end.diedAt),
      ...(trace && { trace }),
    }
  }
  const { key, reason, eventId, principal } = stored
  const receivedAt = new Date(stored.receivedAt)
  const unreadable = { reason, eventId, principal, receivedAt, body: fromBase64(body ?? '') }
  const failures = [{ handler: 'none', message: reason }]
  return { key, event: undefined, unreadable, receivedAt, attempts: 0, completed: [], failures, diedAt: receivedAt }
}
