import { WebhookError } from '../errors.ts'
import { checkedApart, checkOptions } from '../internal/check-options.ts'
import { defineInbox } from './define-inbox.ts'
import type { InboxDefinition } from './inbox.ts'
import { SqlInbox } from './sql/inbox.ts'
import { type OwnedFile, ownDatabase, ownFile } from './sqlite/file.ts'
import { FileStore } from './sqlite/store.ts'
import type { SqliteTransactional } from './sqlite/transactions.ts'
import type { SqliteDatabase } from './sqlite-tables/database.ts'
import { limitRules, limitsOf } from './sqlite-tables/storage.ts'

export { type InboxFile, openInboxFile } from './sqlite/inspection.ts'
export type { SqliteTransactional } from './sqlite/transactions.ts'
export type { SqliteDatabase, SqliteStatement } from './sqlite-tables/database.ts'
export type { Synchronous } from './sqlite-tables/transactions.ts'

/**
 * The options of `sqliteInbox`: either `path` or `database`, and the limits.
 * @typeParam Database the type of `database`. Handlers write with it in their transactions
 */
export interface SqliteInboxOptions<Database extends SqliteDatabase = SqliteDatabase> {
  /** The file. It is made if it does not exist. Use a local disk: network file systems lock unreliably. */
  readonly path?: string
  /**
   * A connection to use instead, of better-sqlite3 or with its interface. The inbox changes its settings, and does not
   * close it.
   */
  readonly database?: Database
  /**
   * The number of events that are handled at a time.
   * @defaultValue 16
   */
  readonly concurrency?: number
  /**
   * The number of events that may wait, for a slot or for a retry. Beyond that, deliveries are answered 503.
   * @defaultValue 10_000
   */
  readonly maxWaiting?: number
  /**
   * The number of events that are kept as dead letters. The newest ones stay. Up to 1,000 unreadable deliveries are
   * also kept.
   * @defaultValue 10_000
   */
  readonly maxDeadLetters?: number
  /**
   * The time for which event keys are remembered, in ms from the ends of their events.
   * @defaultValue 86_400_000 (24 h)
   */
  readonly ttlMs?: number
}

/**
 * An inbox in a SQLite file: acknowledged events survive the process and a power failure. If events were waiting or
 * running when the process ended, the next process that opens the file handles them. Only one process at a time can
 * open it. The driver is node:sqlite, or libsql if Node has none. Handlers that write to the same file get
 * `context.transaction`.
 *
 * ```ts
 * const receiver = createReceiver({ verify, inbox: sqliteInbox({ path: '/var/lib/app/events.db' }) })
 * receiver.on('encoding.finished', async (event, { transaction }) => {
 *   await transaction((database) => database.prepare('INSERT INTO finished VALUES (?)').run(event.mediaId))
 * })
 * ```
 * @throws WebhookError `invalid_option`; opening it throws `unavailable` when the file cannot be used
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
      const { concurrency, ...rest } = limitsOf(limits)
      const store = FileStore.open(host, open(), { concurrency, ...rest })
      return new SqlInbox(host, store, { handles: true, concurrency })
    },
  })
}

function opener(path: string | undefined, database: SqliteDatabase | undefined): () => OwnedFile {
  if (path === undefined && typeof database?.prepare === 'function') return () => ownDatabase(database)
  // SQLite keeps a database with one of these names in memory.
  const isFile = typeof path === 'string' && path !== '' && path !== ':memory:'
  if (database === undefined && isFile) return () => ownFile(path)
  throw new WebhookError('invalid_option', 'sqliteInbox: give either the path of a file or a database')
}
