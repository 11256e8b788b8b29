import { existsSync } from 'node:fs'
import { dirname } from 'node:path'
import { WebhookError } from '../../errors.ts'
import { SqliteDeadLetters } from './dead-letters.ts'
import { inTransaction, openDatabase, type SqliteDatabase } from './driver.ts'
import { SqliteEvents } from './events.ts'
import { lock, unlock } from './lock.ts'
import { checkVersion, makeTables } from './schema.ts'

/** The open file of an inbox. */
export interface SqliteFile {
  readonly path: string
  readonly database: SqliteDatabase
  readonly events: SqliteEvents
  readonly deadLetters: SqliteDeadLetters
  close(): void
}

/** Opens the file at a path. `exclusive` opens it to handle its events, which one process at a time can do. */
export function openFile(path: string, { exclusive }: { readonly exclusive: boolean }): SqliteFile {
  return usable(path, () => {
    if (!existsSync(dirname(path))) throw new Error(`there is no folder ${dirname(path)}`)
    const database = openDatabase(path)
    return prepare(database, exclusive, () => database.close())
  })
}

/** Uses the file of a connection that the user has opened. */
export function useDatabase(database: SqliteDatabase): SqliteFile {
  return usable(pathOf(database), () => prepare(database, true, () => {}))
}

function prepare(database: SqliteDatabase, exclusive: boolean, closeDatabase: () => void): SqliteFile {
  const close = () => {
    // libsql keeps a closed connection, locks and all, until its statements are collected.
    unlock(database)
    closeDatabase()
  }
  try {
    // In ms. A process that looks into the file of a busy inbox waits for a gap between its commits.
    database.exec(`PRAGMA busy_timeout = ${exclusive ? 1_000 : 10_000}`)
    const path = pathOf(database)
    if (exclusive) {
      lock(database, path)
      database.exec('PRAGMA journal_mode = WAL')
    }
    // A commit returns once it is on disk. macOS needs fullfsync for that, since its fsync stops at the drive's cache.
    database.exec('PRAGMA synchronous = FULL')
    database.exec('PRAGMA fullfsync = ON')
    // Hashes come in no order, so each commit touches pages all over the index of keys. 64 MiB of it stay in memory, and
    // pages that change often are copied from the log less often.
    database.exec('PRAGMA cache_size = -65536')
    database.exec('PRAGMA wal_autocheckpoint = 4000')
    if (exclusive) inTransaction(database, () => makeTables(database))
    else checkVersion(database)
    const events = new SqliteEvents(database)
    const checkpointAndClose = () => {
      // libsql leaves the log to the next process that opens the file. So does a process that only looks into it.
      if (exclusive) attempt(() => database.exec('PRAGMA main.wal_checkpoint(TRUNCATE)'))
      close()
    }
    return { path, database, events, deadLetters: new SqliteDeadLetters(database, events), close: checkpointAndClose }
  } catch (error) {
    close()
    throw error
  }
}

function attempt(step: () => void): void {
  try {
    step()
  } catch {
    // The log is copied when the file is next opened.
  }
}

/** Runs `use`, and turns its error into one that says which file cannot be used. */
export function usable<T>(path: string, use: () => T): T {
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
