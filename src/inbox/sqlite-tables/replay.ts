import { WebhookError } from '../../errors.ts'
import type { InboxHost } from '../inbox.ts'
import { type Parsing, type Replays, SqlDeadLetters } from '../sql/dead-letters.ts'
import type { SyncTables } from '../sql/tables.ts'
import { type SqliteEvents, writeFailed } from './events.ts'
import type { SqliteSql } from './sql.ts'
import type { Commits } from './storage.ts'

/** What a replay asks an open inbox, and tells it. */
interface OpenInbox {
  /** @throws WebhookError once the inbox is closing */
  checkOpen(): void
  isFull(): boolean
  /** Called with the row of an event that waits again. An unreadable delivery can also begin an expectation. */
  replayed(row: number): void
}

/** The dead letters of an open inbox, which handles a replayed event immediately. */
export const openDeadLetters = (tables: SyncTables, inbox: OpenInbox, parsing: Parsing): SqlDeadLetters => {
  const check = () => {
    inbox.checkOpen()
    if (inbox.isFull()) throw new WebhookError('overloaded', 'too many events are waiting')
  }
  const replayed = (row: number | string) => inbox.replayed(Number(row))
  return new SqlDeadLetters(tables, { putBack, largestCommit: 1, check, replayed }, parsing)
}

/** Makes the step that puts an event back in its place. It waits from now on. */
export const putBack: Replays['putBack'] = ({ id }, { event, receivedAt, trace, completed, failedAttempts }) => ({
  sql: `INSERT INTO $event (id, event, received_at, trace, completed, failed, due_at)
    SELECT event_id, $2, $3, $4, $5, $6, $7 FROM $dead_letter WHERE id = $1`,
  values: [
    id,
    JSON.stringify(event),
    receivedAt.getTime(),
    trace === undefined ? null : JSON.stringify(trace),
    JSON.stringify(completed),
    writeFailed(failedAttempts),
    Date.now(),
  ],
})

/** Replaces unreadable deliveries by their events. */
export const parsingIn = (
  { events, sql }: { readonly events: SqliteEvents; readonly sql: SqliteSql },
  commits: Commits,
  host: InboxHost,
): Parsing => ({
  host,
  replace(key, parsed) {
    const written = events.write(parsed, host.expectations?.(parsed))
    const gone = { sql: 'DELETE FROM $dead_letter WHERE hash = $1', values: [events.hashKey(key)] }
    return commits.add(() => {
      if (sql.run(gone) === 0) return false
      const row = events.accept(written)
      if (row === undefined) return true
      events.waitFromNow(row)
      return row
    })
  },
})
