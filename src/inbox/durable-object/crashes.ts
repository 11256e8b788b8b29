import type { Predecessor } from '../engine/suspects.ts'
import type { SqliteDatabase, SqliteStatement } from '../sqlite-tables/database.ts'
import type { CrashRecords } from '../sqlite-tables/storage.ts'

interface CrashRow {
  readonly crashes: number
  readonly alone: number | null
}

/**
 * The record of the times that the object ended in the middle of its work: a crash, an eviction or a new version. The
 * platform runs one instance of an object at a time, so it needs no token. Nothing is written unless an instance finds
 * events that are due.
 */
export class ObjectCrashes implements CrashRecords {
  /** `undefined` when the previous instance left nothing that is due. */
  readonly predecessor: Predecessor | undefined
  readonly #setAlone: SqliteStatement
  readonly #setCrashes: SqliteStatement

  /** Part of a transaction. */
  constructor(database: SqliteDatabase) {
    this.predecessor = takeOver(database)
    this.#setAlone = database.prepare('UPDATE inbox_owner SET alone = ?')
    this.#setCrashes = database.prepare('UPDATE inbox_owner SET crashes = ?')
  }

  /** Names the event that is handled while no other one is: if the object ends now, that event is blamed. */
  recordAlone(row: number | null): void {
    this.#setAlone.run(row)
  }

  /** Records that the events which were running have been handled, and caused no crash. */
  forgetCrashes(): void {
    this.#setCrashes.run(0)
  }
}

function takeOver(database: SqliteDatabase): Predecessor | undefined {
  const row = database.prepare('SELECT crashes, alone FROM inbox_owner').get() as CrashRow | undefined
  const due = database.prepare('SELECT 1 FROM inbox_event WHERE due_at <= ? LIMIT 1').get(Date.now())
  if (row?.alone != null) database.prepare('UPDATE inbox_event SET starts = starts + 1 WHERE id = ?').run(row.alone)
  if (row !== undefined) database.exec('DELETE FROM inbox_owner')
  if (due === undefined) return undefined
  const crashes = (row?.crashes ?? 0) + 1
  database.prepare("INSERT INTO inbox_owner (token, pid, crashes) VALUES ('object', 0, ?)").run(crashes)
  return { crashes, mayBeAlive: false }
}
