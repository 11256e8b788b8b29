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

/**
 * Maximum number of dead letters that are replayed in one commit. The deliveries to the process that has the inbox open
 * wait for it.
 */
const maxCommit = 100

/** The file of a `sqliteInbox`, opened to inspect it. */
export interface InboxFile extends InspectedInbox {
  stats(): InboxStats
  readonly events: InboxEvents & {
    get(key: string): EventRecord | undefined
    /** The process that has the inbox open starts the attempt within a second, or the next one that opens it. */
    retryNow(key: string): boolean
  }
  expected(limit?: number): readonly OpenExpectation[]
  close(): void
}

/**
 * Opens the file of a `sqliteInbox` to inspect it. The file does not say which events are running: they are `waiting` here. A
 * replay does not know how many events may wait in the inbox. Do not call it in a process whose
 * inbox uses a `database` of another driver: two copies of SQLite release each other's locks.
 *
 * ```ts
 * const file = openInboxFile('events.db')
 * console.log(file.stats())
 * file.close()
 * ```
 * @throws WebhookError `invalid_option` when there is no file, `unavailable` when it cannot be used
 */
export function openInboxFile(path: string): InboxFile {
  if (!existsSync(path)) throw new WebhookError('invalid_option', `there is no inbox file ${path}`)
  const file = openFile(path)
  const { database, events } = file
  // The process that has the inbox open copies the log into the file.
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
    // These tables answer at once.
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
