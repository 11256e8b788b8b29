import { existsSync } from 'node:fs'
import { dirname } from 'node:path'
import { WebhookError } from '../../errors.ts'
import { SqliteDeadLetters } from './dead-letters.ts'
import { inTransaction, openDatabase, type SqliteDatabase } from './driver.ts'
import { SqliteEvents } from './events.ts'
import { lock, unlock } from './lock.ts'
import { checkVersion, makeTables } from './schema.ts'

/** The file of an inbox, open. */
export interface SqliteFile {
  readonly path: string
  readonly database: SqliteDatabase
  readonly events: SqliteEvents
  readonly letters: SqliteDeadLetters
  close(): void
}

/** Opens the file at a path; to handle its events, which only one process can at a time, `exclusive`. */
export function openFile(path: string, { exclusive }: { readonly exclusive: boolean }): SqliteFile {
  return usable(path, () => {
    if (!existsSync(dirname(path))) throw new Error(`there is no folder ${dirname(path)}`)
    const database = openDatabase(path)
    return prepare(database, exclusive, () => database.close())
  })
}

/** Uses the file of a connection that somebody else has opened. */
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
    // In ms. Whoever looks into it beside an inbox at work has to wait for a gap between its commits.
    database.exec(`PRAGMA busy_timeout = ${exclusive ? 1_000 : 10_000}`)
    const path = pathOf(database)
    if (exclusive) {
      lock(database, path)
      database.exec('PRAGMA journal_mode = WAL')
    }
    // On disk before a commit returns. Where fsync alone does not reach the disk, as on macOS, it is told to.
    database.exec('PRAGMA synchronous = FULL')
    database.exec('PRAGMA fullfsync = ON')
    // Keys come in no order, so that each commit touches pages all over their index: 64 MiB of it are kept in memory,
    // and pages that change often are copied from the log less often.
    database.exec('PRAGMA cache_size = -65536')
    database.exec('PRAGMA wal_autocheckpoint = 4000')
    if (exclusive) inTransaction(database, () => makeTables(database))
    else checkVersion(database)
    const events = new SqliteEvents(database)
    const checkpointAndClose = () => {
      // libsql leaves the log to whoever opens the file next, and so does this where somebody looks into the file.
      if (exclusive) attempt(() => database.exec('PRAGMA main.wal_checkpoint(TRUNCATE)'))
      close()
    }
    return { path, database, events, letters: new SqliteDeadLetters(database, events), close: checkpointAndClose }
  } catch (error) {
    close()
    throw error
  }
}

function attempt(step: () => void): void {
  try {
    step()
  } catch {
    // It was worth a try.
  }
}

/** Runs something that finds out whether a file can be used. */
export function usable<T>(path: string, use: () => T): T {
  try {
    return use()
  } catch (cause) {
    if (cause instanceof WebhookError) throw cause
    const { message } = cause as Error
    throw new WebhookError('unavailable', `the inbox file ${path} cannot be used: ${message}`, { cause })
  }
}

/** Where its file is in truth: one file that is reached by two paths has one lock. */
function pathOf(database: SqliteDatabase): string {
  const databases = database.prepare('PRAGMA database_list').all() as { name: string; file: string }[]
  const path = databases.find(({ name }) => name === 'main')?.file
  if (path) return path
  throw new WebhookError('invalid_option', 'sqliteInbox: database has no file, and would lose everything')
}
