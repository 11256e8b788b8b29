import type { EventRecord } from '../../inbox/reading.ts'
import type { DeadRow } from '../reading/causes.ts'
import type { Subject } from '../subject.ts'
import type { Row } from './rows.tsx'

/** Shows an event as a row of a list. */
export function rowOfRecord({ redaction }: Subject, record: EventRecord): Row {
  const { key, state, type, mediaId, event, attempts, receivedAt, failedAttempts, dueAt } = record
  const title = event && redaction.title(event)
  const message = failedAttempts
    .at(-1)
    ?.failures.map((failure) => failure.message)
    .join('; ')
  return {
    key,
    state,
    type,
    mediaId,
    title,
    attempts,
    at: receivedAt,
    message: state === 'handled' ? undefined : message,
    dueAt,
  }
}

/** Shows a dead letter as a row of a list. */
export function rowOfDead({ redaction }: Subject, { key, event, diedAt, attempts, message }: DeadRow): Row {
  const title = event && redaction.title(event)
  return { key, state: 'dead', type: event?.type, mediaId: event?.mediaId, title, attempts, at: diedAt, message }
}
