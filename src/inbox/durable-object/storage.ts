import type { ObjectSql, ObjectStorage } from '../../storage/durable-objects.ts'
import type { Predecessor } from '../engine/suspects.ts'
import { CrashRecords } from '../sqlite-tables/crash-records.ts'
import type { SqliteDatabase, SqliteStatement } from '../sqlite-tables/database.ts'
import { SqliteDeadLetters } from '../sqlite-tables/dead-letters.ts'
import { SqliteEvents } from '../sqlite-tables/events.ts'
import { makeTables } from '../sqlite-tables/schema.ts'
import type { SettlingFile } from '../sqlite-tables/settle.ts'
import type { Commits } from '../sqlite-tables/storage.ts'

/** Opens the storage of an object: makes the tables if there are none, and looks for traces of a crash. */
export function openStorage(storage: ObjectStorage): SettlingFile {
  const database = databaseOf(storage.sql)
  return storage.transactionSync(() => {
    makeTables(database)
    const owner = new ObjectCrashes(database)
    // The JSON of a key, since lone surrogates would all become one character. Workers hash asynchronously only.
    const events = new SqliteEvents(database, JSON.stringify)
    return { database, events, deadLetters: new SqliteDeadLetters(database, events), owner }
  })
}

export interface ObjectCommits extends Commits {
  /** Carries out a write in a transaction. */
  now<T>(write: () => T): T
}

/**
 * Writes immediately: the runtime commits the writes of one turn together, and holds back answers and requests of the object
 * until they are on disk.
 */
export const commitsOf = (storage: ObjectStorage): ObjectCommits => ({
  now: (write) => storage.transactionSync(write),
  add: async (write) => storage.transactionSync(write),
  // No other instance of the object runs.
  isOwner: () => true,
})

/**
 * The record of the times that the object ended in the middle of its work: a crash, an eviction or a new version. The
 * platform runs one instance of an object at a time, so its token is always the same. Nothing is written unless an
 * instance finds events that are due.
 */
class ObjectCrashes extends CrashRecords {
  readonly predecessor: Predecessor | undefined

  constructor(database: SqliteDatabase) {
    super(database, 'object')
    if (this.sql.hasDue.get(Date.now()) === undefined) return
    const crashes = (this.previous?.crashes ?? 0) + 1
    this.sql.add.run(this.token, 0, crashes)
    this.predecessor = { crashes, mayBeAlive: false }
  }
}

const databaseOf = (sql: ObjectSql): SqliteDatabase => ({
  exec: (query) => sql.exec(query),
  prepare: (query) => statementOf(sql, query),
  close() {},
})

/** Makes a statement. The runtime caches those that it has prepared, by their text. */
function statementOf(sql: ObjectSql, query: string): SqliteStatement {
  const all = (...parameters: unknown[]): unknown[] => sql.exec(query, ...parameters).toArray()
  return {
    all,
    get: (...parameters) => all(...parameters)[0],
    run(...parameters) {
      sql.exec(query, ...parameters)
      // The cursor's own number also counts what was written to indexes.
      const [counts] = sql.exec('SELECT changes() AS changes, last_insert_rowid() AS lastInsertRowid').toArray()
      return counts as ReturnType<SqliteStatement['run']>
    },
  }
}
