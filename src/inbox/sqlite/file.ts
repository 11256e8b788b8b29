import { existsSync } from 'node:fs'
import { dirname } from 'node:path'
import { WebhookError } from '../../errors.ts'
import { inTransaction, type SqliteDatabase } from '../sqlite-tables/database.ts'
import { SqliteEvents } from '../sqlite-tables/events.ts'
import { checkVersion, makeTables } from '../sqlite-tables/schema.ts'
import { type SqliteTables, tablesOf } from '../sqlite-tables/storage.ts'
import { openDatabase } from './driver.ts'
import { SqliteEventBatch } from './event-batch.ts'
import { hashKey } from './hash.ts'
import { FileLease, lock, unlessLocked, unlock } from './lease.ts'
import { takeFromThisProcess } from './openers.ts'

export interface SqliteFile extends SqliteTables {
  readonly path: string
  close(): void
}

/** The file of an inbox that this process handles. */
export interface OwnedFile extends SqliteFile {
  readonly events: SqliteEventBatch
  readonly owner: FileLease
  /** Lets another inbox of this process have the file. The connection stays open to read. */
  unlock(): void
  /** Copies a log that was deleted into the file, as long as this process has it open: it has acknowledged events. */
  rescueLog(): void
}

/** Opens the file at a path to read it, while another process may handle its events. */
export function openFile(path: string): SqliteFile {
  return withFileError(path, () => {
    const database = openDatabase(path)
    const close = () => database.close()
    return closedOnError(close, () => {
      // In ms. It waits for a gap between the commits of a busy inbox.
      database.exec('PRAGMA busy_timeout = 10000')
      const path = pathOf(database)
      setPragmas(database)
      checkVersion(database)
      return { ...tablesOf(database, new SqliteEvents(database, hashKey)), path, close }
    })
  })
}

/** Opens the file at a path to handle its events, which one process at a time can do. */
export function ownFile(path: string): OwnedFile {
  return withFileError(path, () => {
    if (!existsSync(dirname(path))) throw new Error(`there is no folder ${dirname(path)}`)
    const database = openDatabase(path)
    return own(database, () => database.close())
  })
}

/** Uses the file of a connection that the user has opened. */
export function ownDatabase(database: SqliteDatabase): OwnedFile {
  checkRows(database)
  return withFileError(pathOf(database), () => own(database, () => {}))
}

/** Refuses a connection that makes BigInts of numbers, or arrays of rows. */
function checkRows(database: SqliteDatabase): void {
  const row = database.prepare('SELECT 1 AS one').get() as { readonly one?: unknown }
  if (row.one === 1) return
  const fix =
    'open it without readBigInts, returnArrays or defaultSafeIntegers, and set that for statements of your own'
  throw new WebhookError('invalid_option', `sqliteInbox: database does not return rows as objects with numbers; ${fix}`)
}

function own(database: SqliteDatabase, closeDatabase: () => void): OwnedFile {
  const closeUnlocked = () => {
    // libsql keeps a closed connection, locks and all, until its statements are collected. The application may have closed
    // its connection already.
    ignoreErrors(() => unlock(database))
    closeDatabase()
  }
  return closedOnError(closeUnlocked, () => {
    database.exec('PRAGMA busy_timeout = 1000')
    const path = pathOf(database)
    takeFromThisProcess(path)
    // To attach the lock's file, SQLite reads this one.
    unlessLocked(() => database.exec('PRAGMA main.schema_version'))
    lock(database, path)
    const owner = unlessLocked(() => {
      // Without the schema's name it would also change the lock's file.
      database.exec('PRAGMA main.journal_mode = WAL')
      setPragmas(database)
      return inTransaction(database, () => {
        makeTables(database)
        return new FileLease(database, path)
      })
    })
    // From here on, nothing waits for a lock in SQLite, which would block the event loop.
    database.exec('PRAGMA busy_timeout = 0')
    const close = () => {
      // libsql leaves the log to the next process that opens the file. So does a process that only reads it.
      ignoreErrors(() => database.exec('PRAGMA main.wal_checkpoint(TRUNCATE)'))
      closeUnlocked()
    }
    const tables = tablesOf(database, new SqliteEventBatch(database, hashKey))
    const rescueLog = () => {
      // Another process that has opened the file has made a new log.
      if (!existsSync(`${path}-wal`)) ignoreErrors(() => database.exec('PRAGMA main.wal_checkpoint(TRUNCATE)'))
    }
    return { ...tables, path, owner, close, unlock: () => unlock(database), rescueLog }
  })
}

function setPragmas(database: SqliteDatabase): void {
  // A commit returns once it is on disk. macOS needs fullfsync for that, since its fsync stops at the drive's cache.
  database.exec('PRAGMA synchronous = FULL')
  database.exec('PRAGMA fullfsync = ON')
  // Room for the pages of a large commit, and no more: after most commits, SQLite goes through all pages in memory. With 64 MiB
  // that takes 6 µs of CPU more for an event, of 25, also if the hashes of 500,000 keys come in no order.
  database.exec('PRAGMA cache_size = -8192')
  // Pages that change often are copied from the log less often.
  database.exec('PRAGMA wal_autocheckpoint = 4000')
  // In bytes. A log that grew beyond it is cut when it is begun again.
  database.exec('PRAGMA main.journal_size_limit = 67108864')
}

/** Runs `open`, and closes what it has opened if it throws. */
export function closedOnError<T>(close: () => void, open: () => T): T {
  try {
    return open()
  } catch (error) {
    close()
    throw error
  }
}

function ignoreErrors(step: () => void): void {
  try {
    step()
  } catch {
    // The next process that opens the file copies the log, and finds no lock of a closed connection.
  }
}

/** Runs `use`, and turns its error into one that says which file cannot be used. */
export function withFileError<T>(path: string, use: () => T): T {
  try {
    return use()
  } catch (cause) {
    if (cause instanceof WebhookError) throw cause
    const { message } = cause as Error
    throw new WebhookError('unavailable', `the inbox file ${path} cannot be used: ${message}`, { cause })
  }
}

/** Returns the real path: one file that is reached by two paths has one lock. */
function pathOf(database: SqliteDatabase): string {
  const databases = database.prepare('PRAGMA database_list').all() as { name: string; file: string }[]
  const path = databases.find(({ name }) => name === 'main')?.file
  if (path) return path
  throw new WebhookError('invalid_option', 'sqliteInbox: database has no file, and would lose everything')
}
