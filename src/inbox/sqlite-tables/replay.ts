import type { InboxHost } from '../inbox.ts'
import type { ReplayParsing, Replays } from '../sql/dead-letters.ts'
import type { SqliteEvents } from './events.ts'
import type { SqliteSql } from './sql.ts'
import type { Commits } from './storage.ts'

/** The step that puts an event back: due now, after the other due retries. */
export const putBack: Replays['putBack'] = ({ id }, { event, receivedAt, trace, completed, failedAttempts = [] }) => {
  const now = Date.now()
  return {
    sql: `INSERT INTO $event (id, event, received_at, trace, completed, failed, due_at, delayed_at)
      SELECT event_id, $2, $3, $4, $5, $6, $7, $8 FROM $dead_letter WHERE id = $1`,
    values: [
      id,
      JSON.stringify(event),
      receivedAt.getTime(),
      trace === undefined ? null : JSON.stringify(trace),
      JSON.stringify(completed),
      failedAttempts.length === 0 ? null : JSON.stringify(failedAttempts),
      now,
      now,
    ],
  }
}

export const replaceIn =
  (
    { events, sql }: { readonly events: SqliteEvents; readonly sql: SqliteSql },
    commits: Commits,
    host: InboxHost,
  ): ReplayParsing['replace'] =>
  (key, parsed) => {
    const written = events.write(parsed, host.expectations?.(parsed))
    const gone = { sql: 'DELETE FROM $dead_letter WHERE hash = $1', values: [events.hashKey(key)] }
    return commits.add(() => {
      if (sql.run(gone) === 0) return false
      const id = events.accept(written)
      if (id !== undefined) events.replayed(id)
      return id ?? true
    })
  }
