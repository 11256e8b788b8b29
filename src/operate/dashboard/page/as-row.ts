import { type OverdueOutcome, readOverdue } from '../../../handlers/overdue.ts'
import { pausedFor } from '../../../inbox/operations/paused.ts'
import type { EventRecord, HandlerFailure } from '../../../inbox/reading.ts'
import type { DeadRow } from '../reading/causes.ts'
import type { Subject } from '../subject.ts'
import type { PageState } from './page-state.ts'
import type { Row } from './rows.tsx'

/** @param known overdue events already read, by key */
export async function makeRows(
  { subject, pauses }: PageState,
  records: readonly EventRecord[],
  known?: ReadonlyMap<string, OverdueOutcome>,
): Promise<readonly Row[]> {
  const rows: Row[] = []
  for (const record of records) {
    const overdue = known?.get(record.key) ?? (await readOverdue(subject.inbox, record))
    rows.push({ ...rowOfRecord(subject, record), overdue, waitsFor: pausedFor(record, await pauses()) })
  }
  return rows
}

function rowOfRecord({ redaction }: Subject, { event, failedAttempts, receivedAt, ...record }: EventRecord): Row {
  const title = event && redaction.title(event)
  const message = record.state === 'handled' ? undefined : joinMessages(failedAttempts.at(-1)?.failures ?? [])
  return { ...record, title, message, at: receivedAt }
}

export const rowOfDead = ({ diedAt, failures, ...row }: DeadRow): Row => ({
  ...row,
  state: 'dead',
  at: diedAt,
  message: joinMessages(failures),
})

const joinMessages = (failures: readonly HandlerFailure[]): string | undefined =>
  failures.length === 0 ? undefined : failures.map(({ message }) => message).join('; ')
