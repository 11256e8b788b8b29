import { randomUUID } from 'node:crypto'
import { statSync, truncateSync } from 'node:fs'
import { basename } from 'node:path'
import { WebhookError } from '../../errors.ts'
import { inTransaction, isBusy, type SqliteDatabase } from '../sqlite-tables/database.ts'
import { OwnerRow } from '../sqlite-tables/owner-row.ts'

/** The time for which a check is good, in ms. Every commit makes one, so an inbox at work rarely needs another. */
const checkedForMs = 5

/**
 * The hold of a process that recovers, in ms. A previous process that lost its lock alive stops meanwhile: it checks its
 * token every 250 ms. And a process that crashes again as soon as it has booted does so before an event starts.
 */
const holdMs = { alive: 750, again: 250 }

/**
 * Locks a file for this process, until {@link unlock} or the end of the connection. It is a lock of the operating system
 * on a second file beside it: it ends with the process, however that ends, and other processes can still read and replay.
 */
export function lock(database: SqliteDatabase, path: string): void {
  try {
    attach(database, path)
  } catch (error) {
    if (isBusy(error)) {
      unlock(database)
      // The transaction that locks the one file locks the other.
      unlessLocked(() => inTransaction(database, () => {}))
      throw new Error('another process, or another thread of this one, has it open', { cause: error })
    }
    // SQLite has read the lock's file, so nothing holds it. What is in it does not matter, and may be damaged.
    if (tryTruncate(`${path}-lock`)) return attachAgain(database, path)
    throw cannotLock(path, error)
  }
}

/** Runs a step of the start, and says so if another program's lock stops it. */
export function unlessLocked<T>(step: () => T): T {
  try {
    return step()
  } catch (cause) {
    if (!isBusy(cause)) throw cause
    const fix = 'End its transaction, and open the inbox again'
    throw new Error(`another program holds a lock on it, such as a backup or the sqlite3 shell. ${fix}`, { cause })
  }
}

function attach(database: SqliteDatabase, path: string): void {
  database.prepare('ATTACH ? AS inbox_lock').run(`${path}-lock`)
  database.exec('PRAGMA inbox_lock.journal_mode = MEMORY')
  // In this mode a lock outlasts its transaction.
  database.exec('PRAGMA inbox_lock.locking_mode = EXCLUSIVE')
  // A file that cannot be written is only locked for reading, without an error, unless something is written.
  inTransaction(database, () => database.exec('PRAGMA inbox_lock.user_version = 1'), 'EXCLUSIVE')
}

function attachAgain(database: SqliteDatabase, path: string): void {
  try {
    unlock(database)
    attach(database, path)
  } catch (error) {
    throw cannotLock(path, error)
  }
}

const cannotLock = (path: string, cause: unknown) =>
  new Error(`it, or the ${basename(path)}-lock beside it, cannot be locked: ${(cause as Error).message}`, { cause })

function tryTruncate(path: string): boolean {
  try {
    truncateSync(path)
    return true
  } catch {
    return false
  }
}

export function unlock(database: SqliteDatabase): void {
  const attached = database.prepare('PRAGMA database_list').all() as { name: string }[]
  if (attached.some(({ name }) => name === 'inbox_lock')) database.exec('DETACH inbox_lock')
}

/** Returns a function that reads a number, which changes whenever another connection has written. */
export function versionOf(database: SqliteDatabase): () => number {
  const statement = database.prepare('PRAGMA data_version')
  return () => (statement.get() as { data_version: number }).data_version
}

/**
 * The right of an open inbox to handle the events of its file: a token in the file that the next process replaces. The
 * lock on the file is not enough, since the operating system releases it when anything in this process opens and closes
 * the locked file, as a backup does.
 */
export class FileLease extends OwnerRow {
  override readonly holdMs: number
  /** The error of everything that is asked of an inbox that has lost its file. */
  lost: WebhookError
  /** Each file that SQLite has open, and the error once another one, or none, is in its place. */
  readonly #files: readonly { readonly isSame: () => boolean; readonly moved: WebhookError }[]
  readonly #version: () => number
  #isLost = false
  #confirmedAt = 0
  #confirmedVersion: number | undefined

  /** Takes over the file. Part of a transaction. */
  constructor(database: SqliteDatabase, path: string) {
    super(database, randomUUID())
    const lost = (what: string) =>
      new WebhookError('unavailable', `${what}: this process handles nothing more, and has to be restarted`)
    this.lost = lost(`another process has opened ${path}`)
    // Beside a new -shm another process would not see the locks of this one.
    this.#files = [path, `${path}-wal`, `${path}-shm`].map((file) => ({
      isSame: watchInode(file),
      moved: lost(`${file} was deleted, moved or replaced while it was open`),
    }))
    this.#version = versionOf(database)
    const { previous } = this
    const isAlone = previous === undefined || previous.pid === process.pid || !isAlive(previous.pid)
    this.holdMs = isAlone ? (previous?.running ? holdMs.again : 0) : holdMs.alive
    this.begin(previous !== undefined, process.pid)
  }

  get isLost(): boolean {
    return this.#isLost
  }

  /** Throws {@link lost} when another process has taken over the file, or it is gone. Part of a transaction. */
  check(): void {
    // node:sqlite returns undefined if there is no row, as libsql does; other drivers may return null.
    this.#isLost ||= !this.sql.owns.get(this.token) || this.#isGone()
    if (this.#isLost) throw this.lost
    this.#confirmedAt = performance.now()
  }

  /** SQLite continues to write to a deleted file. Nothing ever reads that. */
  #isGone(): boolean {
    const gone = this.#files.find(({ isSame }) => !isSame())
    if (gone !== undefined) this.lost = gone.moved
    return gone !== undefined
  }

  /** Returns `false` when another process has taken over the file, or it is gone. */
  confirm(): boolean {
    if (this.#isLost) return false
    if (performance.now() - this.#confirmedAt < checkedForMs) return true
    const version = this.#version()
    if (version !== this.#confirmedVersion) this.#isLost = !this.sql.owns.get(this.token)
    this.#isLost ||= this.#isGone()
    this.#confirmedVersion = version
    this.#confirmedAt = performance.now()
    return !this.#isLost
  }

  /** Gives the file up to another inbox of this process. */
  giveUp(error: WebhookError): void {
    this.lost = error
    this.#isLost = true
  }
}

function isAlive(pid: number): boolean {
  try {
    return process.kill(pid, 0)
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'EPERM'
  }
}

/**
 * Remembers which file is at a path. The returned function returns `true` while that file is still there, and takes some
 * microseconds. It says so too while the path cannot be read, and if the file system gives files no number.
 */
function watchInode(path: string): () => boolean {
  const opened = fileAt(path)
  return () => {
    if (!opened?.ino) return true
    const found = fileAt(path)
    return found === undefined || (found.ino === opened.ino && found.dev === opened.dev)
  }
}

const noFile = { dev: 0n, ino: 0n }

/** Returns the numbers of the file at a path; `undefined` if they cannot be read now. */
function fileAt(path: string): { readonly dev: bigint; readonly ino: bigint } | undefined {
  try {
    return statSync(path, { bigint: true, throwIfNoEntry: false }) ?? noFile
  } catch {
    return undefined
  }
}
