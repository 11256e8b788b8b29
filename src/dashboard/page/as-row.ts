import { type Overdue, readOverdue } from '../../handlers/overdue.ts'
import { pausedFor } from '../../inbox/operations/paused.ts'
import type { EventRecord, HandlerFailure } from '../../inbox/reading.ts'
import type { DeadRow } from '../reading/causes.ts'
import type { Subject } from '../subject.ts'
import type { Row } from './rows.tsx'

/**
 * Shows events as rows of a list.
 * @param known what the page has read of overdue events, by their keys
 */
export async function rowsOf(
  subject: Subject,
  records: readonly EventRecord[],
  known?: ReadonlyMap<string, Overdue>,
): Promise<readonly Row[]> {
  const { inbox } = subject
  const pauses = (await inbox.pauses?.list()) ?? []
  const rows: Row[] = []
  for (const record of records) {
    const overdue = known?.get(record.key) ?? (await readOverdue(inbox, record))
    rows.push({ ...rowOfRecord(subject, record), overdue, waitsFor: pausedFor(record, pauses) })
  }
  return rows
}

function rowOfRecord({ redaction }: Subject, record: EventRecord): Row {
  const { key, state, type, mediaId, event, attempts, receivedAt, failedAttempts, dueAt, startedAt, process, handler } =
    record
  const title = event && redaction.title(event)
  const message = state === 'handled' ? undefined : textOf(failedAttempts.at(-1)?.failures ?? [])
  return { key, state, type, mediaId, title, attempts, at: receivedAt, message, dueAt, startedAt, process, handler }
}

/** Shows a dead letter as a row of a list. */
export const rowOfDead = ({ diedAt, failures, ...row }: DeadRow): Row => ({
  ...row,
  state: 'dead',
  at: diedAt,
  message: textOf(failures),
})

const textOf = (failures: readonly HandlerFailure[]): string | undefined =>
  failures.length === 0 ? undefined : failures.map(({ message }) => message).join('; ')
