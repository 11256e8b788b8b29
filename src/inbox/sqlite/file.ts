import { existsSync } from 'node:fs'
import { dirname } from 'node:path'
import { WebhookError } from '../../errors.ts'
import { inTransaction, type SqliteDatabase } from './connection.ts'
import { openDatabase } from './driver.ts'
import { FileLease, lock, makePrivate, unlessLocked, unlock } from './lease.ts'
import { checkTables, rememberTables } from './lost-tables.ts'
import { checkVersion, makeTables } from './schema.ts'

/** Longest wait for another program's lock when the file is opened (ms). It blocks the event loop; a sender waits 3 s. */
const openTimeoutMs = 2_500

/** The same for a reader (ms). Enough for a gap between the commits of a busy inbox. */
const readTimeoutMs = 10_000

export interface SqliteFile {
  readonly database: SqliteDatabase
  readonly path: string
  close(): void
}

/** Opens a file for reading. Another process may own it. */
export function openFile(path: string): SqliteFile {
  return withFileError(path, () => {
    const database = openDatabase(path)
    const close = () => database.close()
    return closedOnError(close, () => {
      unlessLocked(database, performance.now() + readTimeoutMs, () => {
        setPragmas(database)
        checkVersion(database, true)
      })
      return { database, path: requirePath(database), close }
    })
  })
}

/** Opens a file to handle its events. Only one process at a time can. */
export function ownFile(path: string): OwnedFile {
  return withFileError(path, () => {
    if (!existsSync(dirname(path))) throw new Error(`there is no folder ${dirname(path)}`)
    makePrivate(path, 0o600)
    const database = openDatabase(path)
    return new OwnedFile(database, () => database.close())
  })
}

/** Owns the file of a connection the user opened. */
export function ownDatabase(database: SqliteDatabase): OwnedFile {
  const row = database.prepare('SELECT 1 AS one').get() as { readonly one?: unknown }
  if (row.one === 1) return withFileError(requirePath(database), () => new OwnedFile(database, () => {}))
  const fix = 'open it without readBigInts, returnArrays or defaultSafeIntegers, and set those on your own statements'
  const message = `sqliteInbox: database must return rows as objects with plain numbers: ${fix}`
  throw new WebhookError('invalid_option', message)
}

const registry = Symbol.for('media-webhooks.sqliteInbox')

/** How each open inbox of this process hands its file over. After a hot reload the old module's still has it open. */
export function openInboxes(): Map<string, () => void> {
  const holder = globalThis as { [registry]?: Map<string, () => void> }
  holder[registry] ??= new Map()
  return holder[registry]
}

/** The file of an inbox, owned by this process. */
export class OwnedFile implements SqliteFile {
  readonly database: SqliteDatabase
  readonly path: string
  readonly lease: FileLease
  readonly #closeDatabase: () => void
  #isLocked = false

  constructor(database: SqliteDatabase, closeDatabase: () => void) {
    this.database = database
    this.#closeDatabase = closeDatabase
    this.path = closedOnError(closeDatabase, () => requirePath(database))
    this.lease = closedOnError(
      () => this.#closeUnlocked(),
      () => this.#take(),
    )
  }

  #take(): FileLease {
    const { database, path } = this
    const deadline = performance.now() + openTimeoutMs
    // Before the file is taken from another receiver, which would end although this one cannot begin.
    unlessLocked(database, deadline, () => inTransaction(database, () => checkVersion(database)))
    openInboxes().get(path)?.()
    this.#isLocked = true
    lock(database, path)
    const owner = unlessLocked(database, deadline, () => {
      // Without the schema name, this would also change the lock file.
      database.exec('PRAGMA main.journal_mode = WAL')
      setPragmas(database)
      const lease = inTransaction(database, () => {
        checkTables(database, path)
        makeTables(database)
        return new FileLease(database, path)
      })
      rememberTables(database)
      return lease
    })
    // SQLite's busy handler would block the event loop.
    database.exec('PRAGMA busy_timeout = 0')
    return owner
  }

  /** Gives the file to another inbox of this process. The connection stays open for reads. */
  unlock(): void {
    // Not a lock that another receiver has on this connection meanwhile. libsql keeps a closed connection and its locks
    // until its statements are collected. The application may have closed its connection already.
    if (this.#isLocked) ignoreErrors(() => unlock(this.database))
    this.#isLocked = false
  }

  #closeUnlocked(): void {
    this.unlock()
    this.#closeDatabase()
  }

  /** Runs a transaction that need not be on disk before later ones are. */
  withoutSync(run: () => void): void {
    this.database.exec('PRAGMA main.synchronous = NORMAL')
    try {
      run()
    } finally {
      this.database.exec('PRAGMA main.synchronous = FULL')
    }
  }

  #copyLog(): void {
    ignoreErrors(() => this.database.exec('PRAGMA main.wal_checkpoint(TRUNCATE)'))
  }

  /** Copies a deleted WAL into the file while this process still has it open: it contains acknowledged events. */
  rescueLog(): void {
    // If a WAL exists, another process created it.
    if (!existsSync(`${this.path}-wal`)) this.#copyLog()
  }

  close(): void {
    // libsql leaves the WAL to whoever opens the file next, even to a mere reader.
    this.#copyLog()
    this.#closeUnlocked()
  }
}

function setPragmas(database: SqliteDatabase): void {
  // Commits wait for the disk. On macOS only fullfsync does; fsync stops at the drive's cache.
  database.exec('PRAGMA synchronous = FULL')
  database.exec('PRAGMA fullfsync = ON')
  // Room for a large commit (8 MiB) and no more: after most commits SQLite walks all cached pages. 64 MiB costs 6 µs of
  // 25 µs CPU per event.
  database.exec('PRAGMA cache_size = -8192')
  // Fewer checkpoints copy a hot page less often.
  database.exec('PRAGMA wal_autocheckpoint = 4000')
  // In bytes. Truncates a longer WAL when it restarts.
  database.exec('PRAGMA main.journal_size_limit = 67108864')
}

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
    // Whoever opens the file next copies the WAL, and finds no lock of a closed connection.
  }
}

/** Fixes by how SQLite or the file system says it. */
const fixes: readonly (readonly [RegExp, string])[] = [
  [
    /EACCES|EPERM|EROFS|readonly|unable to open|cannot be locked/i,
    'the process must be able to write it and its folder',
  ],
  [/EISDIR|local database .*: 14/, 'give the path of a file, in a folder that the process can write'],
  [/^ENOENT/, 'does its folder exist?'],
  [/there is no folder/, 'make it first'],
  [/not a database|malformed/, 'is it a SQLite file? Give the path of a new one'],
  [/disk is full|ENOSPC/, 'free some space'],
]

/** Wraps an error of `use` with the path of the file, and the fix if it is known. */
export function withFileError<T>(path: string, use: () => T): T {
  try {
    return use()
  } catch (cause) {
    if (cause instanceof WebhookError) throw cause
    const { message } = cause as Error
    const [, fix] = fixes.find(([pattern]) => pattern.test(message)) ?? []
    const hint = fix === undefined ? '' : ` (${fix})`
    throw new WebhookError('unavailable', `the inbox file ${path} cannot be used: ${message}${hint}`, { cause })
  }
}

/** Real path: a file reached by two paths has one lock. */
export function requirePath(database: SqliteDatabase): string {
  const databases = database.prepare('PRAGMA database_list').all() as { name: string; file: string }[]
  const path = databases.find(({ name }) => name === 'main')?.file
  if (path) return path
  throw new WebhookError(
    'invalid_option',
    'sqliteInbox: database has no file. Open one on disk; in memory, a restart loses every event',
  )
}
