import { WebhookError } from '../errors.ts'
import { checkNumbers } from '../internal/check-options.ts'
import type { Inbox } from './inbox.ts'
import type { SqliteDatabase } from './sqlite/driver.ts'
import { openFile, type SqliteFile, useDatabase } from './sqlite/file.ts'
import { SqliteInbox } from './sqlite/inbox.ts'

export type { SqliteDatabase, SqliteStatement } from './sqlite/driver.ts'
export { type InboxFile, type InboxFileStats, openInboxFile } from './sqlite/inspection.ts'

export interface SqliteInboxOptions {
  /** The file, which is made if there is none. On a disk of this machine: network file systems lock unreliably. */
  readonly path?: string
  /**
   * A connection to use instead, of better-sqlite3 or with its interface. Its settings are changed, and it is not closed
   * with the inbox.
   */
  readonly database?: SqliteDatabase
  /**
   * How many events are handled at a time.
   * @defaultValue 16
   */
  readonly concurrency?: number
  /**
   * How many events may wait, those that wait for a retry included; above it deliveries are answered 503.
   * @defaultValue 10_000
   */
  readonly maxWaiting?: number
  /**
   * How many events are kept as dead letters, the newest; beside them up to 1,000 refused deliveries are kept.
   * @defaultValue 10_000
   */
  readonly maxDeadLetters?: number
  /**
   * How long event keys are remembered, in ms from the acceptance.
   * @defaultValue 86_400_000, a day
   */
  readonly ttlMs?: number
}

/**
 * Keeps accepted events in a file of SQLite: what was acknowledged survives the process and the machine's power. Events
 * that were waiting or being handled when the process ended are handled by the next that opens the file; only one can
 * at a time. It is opened with node:sqlite, or with libsql where Node has none.
 * @throws WebhookError `invalid_option`, or `unavailable` when the file cannot be used
 */
export function sqliteInbox(options: SqliteInboxOptions): Inbox {
  const { path, database, ...limits } = options
  const { concurrency = 16, maxWaiting = 10_000, maxDeadLetters = 10_000, ttlMs = 86_400_000 } = limits
  checkNumbers('sqliteInbox', { concurrency, maxWaiting, maxDeadLetters, ttlMs })
  return new SqliteInbox(fileOf(path, database), { concurrency, maxWaiting, maxDeadLetters, ttlMs })
}

function fileOf(path: string | undefined, database: SqliteDatabase | undefined): SqliteFile {
  if (path === undefined && typeof database?.prepare === 'function') return useDatabase(database)
  // Such a path would be kept in memory.
  const isFile = typeof path === 'string' && path !== '' && path !== ':memory:'
  if (database === undefined && isFile) return openFile(path, { exclusive: true })
  throw new WebhookError('invalid_option', 'sqliteInbox: give either the path of a file or a database')
}
