import { existsSync } from 'node:fs'
import { WebhookError } from '../../errors.ts'
import type { InboxStats, InspectedInbox, OpenExpectation } from '../reading.ts'
import type { Database } from '../sql/database.ts'
import { inspectedInbox } from '../sql/inspection.ts'
import { inTransaction } from './connection.ts'
import { SyncDatabase } from './database.ts'
import { openFile, type SqliteFile } from './file.ts'
import { hashKey } from './hash.ts'

/** The file of a `sqliteInbox`, opened for inspection. */
export interface InboxFile extends InspectedInbox {
  stats(): InboxStats
  expected(limit?: number): readonly OpenExpectation[]
  close(): void
}

/**
 * Opens the file of a `sqliteInbox` for inspection. The file does not say which events are running, so those are
 * `waiting`. A retry or a replay starts within a second in the process that has the inbox open, or when the next one opens
 * it. A replay does not know the inbox's limit of waiting events. Don't call it in a process whose inbox uses a
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
  const database = new InspectedFile(openFile(path))
  const inbox = inspectedInbox(database, { close: () => database.close() })
  // The file doesn't tell what runs.
  Object.assign(inbox.events, { states: inbox.events.states.filter((state) => state !== 'running') })
  return inbox as InboxFile
}

/** A file that another process may own. */
class InspectedFile extends SyncDatabase {
  readonly hashKey = hashKey
  readonly #file: SqliteFile

  constructor(file: SqliteFile) {
    const unlimited = { ttlMs: Number.POSITIVE_INFINITY, maxWaiting: Number.POSITIVE_INFINITY, concurrency: 0 }
    super(file.database, { ...unlimited, isStrict: false })
    // The process that has the inbox open does the checkpoints.
    file.database.exec('PRAGMA wal_autocheckpoint = 0')
    this.#file = file
  }

  override open(): void {}

  override readonly transaction: Database['transaction'] = () => {
    throw new WebhookError('invalid_transaction', 'the file is open for inspection only')
  }

  protected override commit<T>(write: () => T): T {
    this.checkOpen()
    return inTransaction(this.#file.database, () => this.steps.counter.keep(write))
  }

  override close(): void {
    if (!this.isClosed) this.#file.close()
    this.isClosed = true
  }
}
