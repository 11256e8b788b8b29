import { existsSync } from 'node:fs'
import { WebhookError } from '../../errors.ts'
import type { EventRecord, InboxEvents, InboxStats, InspectedInbox, OpenExpectation } from '../reading.ts'
import { retryStep } from '../sql/events.ts'
import { readExpectedNow } from '../sql/expected.ts'
import { inspectedInbox } from '../sql/inspection.ts'
import { inTransaction } from '../sqlite-tables/database.ts'
import { sqliteReading } from '../sqlite-tables/event-reading.ts'
import { putBack } from '../sqlite-tables/replay.ts'
import { tablesOver } from '../sqlite-tables/sql.ts'
import { openFile } from './file.ts'

/** Maximum number of dead letters replayed per commit. Deliveries to the process that owns the file wait for it. */
const maxCommit = 100

/** The file of a `sqliteInbox`, opened for inspection. */
export interface InboxFile extends InspectedInbox {
  stats(): InboxStats
  readonly events: InboxEvents & {
    get(key: string): EventRecord | undefined
    /** The attempt starts within a second in the process that has the inbox open, or when the next one opens it. */
    retryNow(key: string): boolean
  }
  expected(limit?: number): readonly OpenExpectation[]
  close(): void
}

/**
 * Opens the file of a `sqliteInbox` for inspection. The file does not say which events are running, so those are
 * `waiting`. A replay does not know the inbox's limit of waiting events. Don't call it in a process whose inbox uses a
 * `database` of another driver: two copies of SQLite release each other's locks.
 *
 * ```ts
 * const file = openInboxFile('events.db')
 * console.log(file.stats())
 * file.close()
 * ```
 * @throws WebhookError `invalid_option` if there is no file, `unavailable` if it cannot be used
 */
export function openInboxFile(path: string): InboxFile {
  if (!existsSync(path)) throw new WebhookError('invalid_option', `there is no inbox file ${path}`)
  const file = openFile(path)
  const { database, events } = file
  // The process that has the inbox open does the checkpoints.
  database.exec('PRAGMA wal_autocheckpoint = 0')
  let isClosed = false
  const checkOpen = () => {
    if (isClosed) throw new WebhookError('closing', 'the file is closed')
  }
  const commit = <T>(write: () => T) => {
    checkOpen()
    return inTransaction(database, write)
  }
  const tables = tablesOver(file.sql, { hashKey: events.hashKey, checkOpen, commit: async (write) => commit(write) })
  const reading = sqliteReading(tables)
  const close = () => {
    if (!isClosed) file.close()
    isClosed = true
  }
  const inbox = inspectedInbox(tables, { replays: { putBack, maxCommit }, reading, close })
  return {
    ...inbox,
    stats: () => inbox.stats() as InboxStats,
    expected: (limit) => readExpectedNow(tables, limit),
    events: {
      list: (query) => inbox.events.list(query),
      states: ['waiting', 'retrying', 'dead', 'handled'],
      outcomes: (keys) => inbox.events.outcomes(keys),
      get: (key) => inbox.events.get(key) as EventRecord | undefined,
      retryNow: (key) => commit(() => file.sql.run(retryStep(tables, reading, key)) > 0),
    },
    close,
  }
}
