import { randomUUID } from 'node:crypto'
import { statSync } from 'node:fs'
import { WebhookError } from '../../errors.ts'
import type { Predecessor } from '../engine/suspects.ts'
import type { SqliteDatabase, SqliteStatement } from '../sqlite-tables/database.ts'
import type { CrashRecords } from '../sqlite-tables/storage.ts'

/** The time for which a check is good, in ms. Every commit makes one, so an inbox at work rarely needs another. */
const freshMs = 5

interface OwnerRow {
  readonly pid: number
  readonly crashes: number
  readonly alone: number | null
}

/**
 * The right of an open inbox to handle the events of its file: a token in the file that the next process replaces. The
 * lock on the file is not enough, since the operating system releases it when anything in this process opens and closes
 * the locked file, as a backup does.
 */
export class FileLease implements CrashRecords {
  /** `undefined` when the file is new, or was closed. */
  readonly predecessor: Predecessor | undefined
  /** The error of everything that is asked of an inbox that has lost its file. */
  lost: WebhookError
  readonly #isInPlace: () => boolean
  readonly #moved: WebhookError
  readonly #token = randomUUID()
  readonly #version: SqliteStatement
  readonly #owns: SqliteStatement
  readonly #setAlone: SqliteStatement
  readonly #setCrashes: SqliteStatement
  readonly #remove: SqliteStatement
  #isLost = false
  #confirmedAt = 0
  #confirmedVersion: number | undefined

  /** Takes over the file. Part of a transaction. */
  constructor(database: SqliteDatabase, path: string) {
    const lost = (what: string) =>
      new WebhookError('unavailable', `${what}: this process handles nothing more, and has to be restarted`)
    this.lost = lost(`another process has opened ${path}`)
    this.#moved = lost(`${path} was deleted, moved or replaced while it was open`)
    this.#isInPlace = watchPlace(path)
    this.predecessor = this.#takeOver(database)
    // A number that changes whenever another connection has written.
    this.#version = database.prepare('PRAGMA data_version')
    this.#owns = database.prepare('SELECT 1 AS owns FROM inbox_owner WHERE token = ?')
    this.#setAlone = database.prepare('UPDATE inbox_owner SET alone = ? WHERE token = ?')
    this.#setCrashes = database.prepare('UPDATE inbox_owner SET crashes = ? WHERE token = ?')
    this.#remove = database.prepare('DELETE FROM inbox_owner WHERE token = ?')
  }

  #takeOver(database: SqliteDatabase): Predecessor | undefined {
    const row = database.prepare('SELECT pid, crashes, alone FROM inbox_owner').get() as OwnerRow | undefined
    const crashes = row ? row.crashes + 1 : 0
    if (row && row.alone !== null)
      database.prepare('UPDATE inbox_event SET starts = starts + 1 WHERE id = ?').run(row.alone)
    database.exec('DELETE FROM inbox_owner')
    const insert = database.prepare('INSERT INTO inbox_owner (token, pid, crashes) VALUES (?, ?, ?)')
    insert.run(this.#token, process.pid, crashes)
    return row ? { crashes, mayBeAlive: row.pid !== process.pid && isAlive(row.pid) } : undefined
  }

  get isLost(): boolean {
    return this.#isLost
  }

  /** Throws {@link lost} when another process has taken over the file, or it is gone. Part of a transaction. */
  check(): void {
    // node:sqlite returns undefined if there is no row, as libsql does; other drivers may return null.
    this.#isLost ||= !this.#owns.get(this.#token) || this.#isGone()
    if (this.#isLost) throw this.lost
    this.#confirmedAt = performance.now()
  }

  /** SQLite continues to write to a deleted file. Nothing ever reads that. */
  #isGone(): boolean {
    if (this.#isInPlace()) return false
    this.lost = this.#moved
    return true
  }

  /** Returns `false` when another process has taken over the file, or it is gone. */
  confirm(): boolean {
    if (this.#isLost) return false
    if (performance.now() - this.#confirmedAt < freshMs) return true
    const { data_version: version } = this.#version.get() as { data_version: number }
    if (version !== this.#confirmedVersion) this.#isLost = !this.#owns.get(this.#token)
    this.#isLost ||= this.#isGone()
    this.#confirmedVersion = version
    this.#confirmedAt = performance.now()
    return !this.#isLost
  }

  /** Names the event that is handled while no other one is: if the process ends now, that event made it crash. */
  recordAlone(row: number | null): void {
    this.#setAlone.run(row, this.#token)
  }

  /** Records that the events which were running before a crash have been handled, and caused no other. */
  forgetCrashes(): void {
    this.#setCrashes.run(0, this.#token)
  }

  /** Releases the file, so that the next process does not search for an event that made this one crash. */
  release(): void {
    this.#remove.run(this.#token)
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
function watchPlace(path: string): () => boolean {
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
