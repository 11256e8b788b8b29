import type { MediaEvent } from '../../events/catalogue.ts'
import { fromBase64 } from '../../internal/base64.ts'
import { reviveFailedAttempts } from '../engine/failed-attempts.ts'
import { reviveEvent } from '../engine/stored.ts'
import type { DeadEvent, DeadLetter, FailedAttempt, HandlerFailure, TraceCarrier } from '../reading.ts'

/** The JSON of a dead letter that is an event. */
interface StoredDeadEvent {
  readonly event: MediaEvent
  readonly completed: readonly string[]
  readonly receivedAt: number
  /** Absent in version 1. */
  readonly trace?: TraceCarrier | null
  /** The names of the handlers that it owes. Absent before version 3. */
  readonly owed?: readonly string[] | null
  readonly end: {
    readonly key: string
    readonly attempts: number
    readonly failures: readonly HandlerFailure[]
    /** Absent in version 1. */
    readonly failedAttempts?: readonly FailedAttempt[]
    readonly diedAt: string
  }
}

/** The JSON of an unreadable delivery. Its body has a column of its own. */
interface StoredUnreadable {
  readonly key: string
  readonly reason: string
  readonly eventId?: string
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

/** A dead letter that is an event, and the id of its row. */
export interface DeadEventRow {
  readonly id: string
  readonly deadLetter: DeadEvent
  readonly owed: readonly string[] | undefined
}

/** Reads the names of the handlers that the event of a dead letter owes. */
export const owedOf = ({ dead_letter: text }: DeadLetterRow): readonly string[] | undefined =>
  (JSON.parse(text) as Partial<StoredDeadEvent>).owed ?? undefined

/** Makes a dead letter of its row. */
export function toDeadLetter({ dead_letter: text, body }: DeadLetterRow): DeadLetter {
  const stored = JSON.parse(text) as StoredDeadEvent | StoredUnreadable
  if ('event' in stored) {
    const { event, completed, trace, end } = stored
    const receivedAt = new Date(Math.round(stored.receivedAt))
    return {
      ...end,
      event: reviveEvent(event),
      completed,
      receivedAt,
      ...(end.failedAttempts && { failedAttempts: reviveFailedAttempts(end.failedAttempts) }),
      diedAt: new Date(end.diedAt),
      ...(trace && { trace }),
    }
  }
  const { key, reason, eventId } = stored
  const receivedAt = new Date(stored.receivedAt)
  const unreadable = { reason, eventId, receivedAt, body: fromBase64(body ?? '') }
  const failures = [{ handler: 'none', message: reason }]
  return { key, event: undefined, unreadable, receivedAt, attempts: 0, completed: [], failures, diedAt: receivedAt }
}
