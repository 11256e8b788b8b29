import { WebhookError } from '../errors.ts'
import { checkedApart, checkOptions } from '../internal/check-options.ts'
import { defineInbox } from './define-inbox.ts'
import type { InboxDefinition } from './inbox.ts'
import { SqlInbox } from './sql/inbox.ts'
import type { SqliteDatabase } from './sqlite/connection.ts'
import { type InboxLimits, limitRules, readLimits } from './sqlite/database.ts'
import { type OwnedFile, ownDatabase, ownFile } from './sqlite/file.ts'
import { FileDatabase } from './sqlite/file-database.ts'
import type { SqliteTransactional } from './sqlite/transactions.ts'

export type { SqliteDatabase, SqliteStatement } from './sqlite/connection.ts'
export { type InboxFile, openInboxFile } from './sqlite/inspection.ts'
export type { SqliteTransactional, Synchronous } from './sqlite/transactions.ts'

/**
 * The options of `sqliteInbox`: `path` or `database`, and the limits.
 * @typeParam Database the type of `database`. Handlers write with it in their transactions
 */
export interface SqliteInboxOptions<Database extends SqliteDatabase = SqliteDatabase> extends InboxLimits {
  /** Path of the file, created if missing. Use a local disk: network file systems lock unreliably. */
  readonly path?: string
  /**
   * A connection to use instead, from better-sqlite3 or with its interface. The inbox changes its settings and does not
   * close it.
   */
  readonly database?: Database
}

/**
 * An inbox in a SQLite file: acknowledged events survive the process and a power failure. Events that were waiting or
 * running are handled by the next process that opens the file. Only one process at a time can open it. The driver is
 * node:sqlite, or libsql if Node has none. Handlers that write to the same file get `context.transaction`.
 *
 * ```ts
 * const receiver = createReceiver({ verify, inbox: sqliteInbox({ path: '/var/lib/app/events.db' }) })
 * receiver.on('encoding.finished', async (event, { transaction }) => {
 *   await transaction((database) => database.prepare('INSERT INTO finished VALUES (?)').run(event.mediaId))
 * })
 * ```
 * @throws WebhookError `invalid_option`; opening it throws `unavailable` if the file cannot be used
 */
export function sqliteInbox<Database extends SqliteDatabase = SqliteDatabase>(
  options: SqliteInboxOptions<Database>,
): InboxDefinition<SqliteTransactional<Database>> {
  checkOptions<SqliteInboxOptions>('sqliteInbox', options, {
    path: checkedApart,
    database: checkedApart,
    ...limitRules,
  })
  const { path, database, ...limits } = options ?? {}
  const open = opener(path, database)
  return defineInbox({
    name: 'sqliteInbox',
    expects: true,
    ordersStrictly: true,
    limits: true,
    storage: 'file',
    open(host) {
      const allLimits = readLimits(limits)
      const { concurrency, ttlMs, maxDeadLetters } = allLimits
      const database = FileDatabase.over(host, open(), allLimits)
      return new SqlInbox(host, database, { handles: true, concurrency, ttlMs, maxDeadLetters })
    },
  })
}

function opener(path: string | undefined, database: SqliteDatabase | undefined): () => OwnedFile {
  if (path === undefined && typeof database?.prepare === 'function') return () => ownDatabase(database)
  // SQLite keeps databases of these names in memory.
  const isFile = typeof path === 'string' && path !== '' && path !== ':memory:'
  if (database === undefined && isFile) return () => ownFile(path)
  throw new WebhookError('invalid_option', 'sqliteInbox: pass either path or database')
}
