import { randomUUID } from 'node:crypto'
import { closeSync, existsSync, openSync, statSync, truncateSync } from 'node:fs'
import { basename } from 'node:path'
import { WebhookError } from '../../errors.ts'
import { isBusy, prepareAll, type SqliteDatabase } from './connection.ts'
import { lostTables, saysTableLost } from './lost-tables.ts'

/** Longest wait for the lock of a process that is ending (ms). */
const lockTimeoutMs = 1_000

/** Time an ownership check stays good (ms). Every commit makes one, so a busy inbox rarely makes another. */
const checkedForMs = 5

/**
 * Time before an event starts (ms). `alive`: the previous process may be alive. It has lost its lock, and stops within this
 * time, because it checks its token every 250 ms. `crashed`: it has crashed. If this one crashes right after booting, no
 * event is the cause.
 */
const holdMs = { alive: 750, crashed: 250 }

/**
 * Locks a file for this process until {@link unlock} or the end of the connection. An OS lock on a second file: it ends
 * with the process, however that ends, and other processes can still read and replay.
 */
export function lock(database: SqliteDatabase, path: string): void {
  try {
    attach(database, path)
  } catch (error) {
    if (isBusy(error)) throw new Error('another process, or another thread of this one, has it open', { cause: error })
    try {
      // SQLite could read the lock file, so nobody holds it. Its content doesn't matter and may be damaged.
      truncateSync(`${path}-lock`)
      unlock(database)
      attach(database, path)
    } catch (cause) {
      const message = `it, or the ${basename(path)}-lock beside it, cannot be locked: ${(cause as Error).message}`
      throw new Error(message, { cause })
    }
  }
}

/** Runs a step, which waits for another program's lock until the deadline, and names the cause if that is not enough. */
export function unlessLocked<T>(database: SqliteDatabase, deadline: number, step: () => T): T {
  database.exec(`PRAGMA busy_timeout = ${Math.max(0, Math.ceil(deadline - performance.now()))}`)
  try {
    return step()
  } catch (cause) {
    if (!isBusy(cause)) throw cause
    const fix = 'End its transaction, and open the inbox again'
    throw new Error(`another program holds a lock on it, such as a backup or the sqlite3 shell. ${fix}`, { cause })
  }
}

/**
 * Makes a file with these permissions unless it exists. Does not open an existing one: closing it again would release
 * this process's locks on it.
 */
export function makePrivate(path: string, mode: number): void {
  if (!existsSync(path)) closeSync(openSync(path, 'a', mode))
}

function attach(database: SqliteDatabase, path: string): void {
  // As SQLite does for -wal and -shm.
  makePrivate(`${path}-lock`, statSync(path).mode & 0o666)
  database.exec(`PRAGMA busy_timeout = ${lockTimeoutMs}`)
  database.prepare('ATTACH ? AS inbox_lock').run(`${path}-lock`)
  database.exec('PRAGMA inbox_lock.journal_mode = MEMORY')
  // Keeps the lock beyond its transaction.
  database.exec('PRAGMA inbox_lock.locking_mode = EXCLUSIVE')
  // Writing takes the lock, and is an error on a read-only file. BEGIN EXCLUSIVE would lock the inbox's file as well.
  database.exec('PRAGMA inbox_lock.user_version = 1')
}

export function unlock(database: SqliteDatabase): void {
  const attached = database.prepare('PRAGMA database_list').all() as { name: string }[]
  if (attached.some(({ name }) => name === 'inbox_lock')) database.exec('DETACH inbox_lock')
}

/**
 * The right of an open inbox to handle its file: a token in the file that the next process replaces. The file lock
 * alone isn't enough, since the OS releases it when anything in this process opens and closes the file, such as a
 * backup.
 */
export class FileLease {
  /** Minimum time before an event starts (ms). */
  readonly holdMs: number
  /** Set once another process has taken over the file, or it or a table of it is gone. */
  lost: WebhookError | undefined
  readonly #token = randomUUID()
  readonly #sql
  readonly #path: string
  readonly #taken: WebhookError
  readonly #files: readonly { readonly isSame: () => boolean; readonly moved: WebhookError }[]
  #confirmedAt = 0

  /** Takes over from the previous process. Call it in a transaction. */
  constructor(database: SqliteDatabase, path: string) {
    const lost = (what: string) =>
      new WebhookError('unavailable', `${what}: this process handles no more events; restart it`)
    this.#path = path
    this.#taken = lost(`another process has opened ${path}`)
    // With a new -shm, another process would not see this one's locks. SQLite keeps writing to a deleted file.
    this.#files = [path, `${path}-wal`, `${path}-shm`].map((file) => ({
      isSame: watchInode(file),
      moved: lost(`${file} was deleted, moved or replaced while it was open`),
    }))
    this.#sql = prepareAll(database, owner)
    const previous = this.#sql.previous.get() as { pid: number } | null | undefined
    this.holdMs = previous ? holdMs[isAlive(previous.pid) ? 'alive' : 'crashed'] : 0
    this.#sql.clear.run()
    this.#sql.take.run(this.#token, process.pid)
  }

  /** Gives the file back. Call it in a transaction. */
  release(): void {
    this.#sql.release.run(this.#token)
  }

  /** Throws {@link lost} if this process has lost the file. Call it in a transaction. */
  check(): void {
    this.lost ??= this.#isOwner() ? this.#files.find(({ isSame }) => !isSame())?.moved : this.#taken
    if (this.lost !== undefined) throw this.lost
    this.#confirmedAt = performance.now()
  }

  #isOwner(): boolean {
    try {
      return Boolean(this.#sql.owns.get(this.#token))
    } catch (error) {
      throw this.explain(error) ?? error
    }
  }

  /** Returns {@link lost}, which an error may be the sign of. */
  explain(error: unknown): WebhookError | undefined {
    if (saysTableLost(error)) this.lost ??= lostTables(this.#path)
    return this.lost
  }

  /** Checks it, unless a check was made just now. Returns {@link lost}. */
  findLoss(): WebhookError | undefined {
    try {
      if (performance.now() - this.#confirmedAt >= checkedForMs) this.check()
    } catch {
      // It is lost, or can't be read.
    }
    return this.lost
  }
}

const owner = {
  previous: 'SELECT pid FROM inbox_owner',
  clear: 'DELETE FROM inbox_owner',
  take: 'INSERT INTO inbox_owner (token, pid) VALUES (?, ?)',
  owns: 'SELECT 1 AS owns FROM inbox_owner WHERE token = ?',
  release: 'DELETE FROM inbox_owner WHERE token = ?',
}

/** True if another process may have this id. */
function isAlive(pid: number): boolean {
  try {
    return pid !== process.pid && process.kill(pid, 0)
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'EPERM'
  }
}

/** Watches the file at a path. False once it is gone; true while it is there or can't be checked. */
function watchInode(path: string): () => boolean {
  const opened = fileAt(path)
  return () => {
    if (!opened?.ino) return true
    const found = fileAt(path)
    return found === undefined || (found.ino === opened.ino && found.dev === opened.dev)
  }
}

const noFile = { dev: 0n, ino: 0n }

function fileAt(path: string): { readonly dev: bigint; readonly ino: bigint } | undefined {
  try {
    return statSync(path, { bigint: true, throwIfNoEntry: false }) ?? noFile
  } catch {
    return undefined
  }
}
