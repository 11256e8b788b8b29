import type { ObjectSql, ObjectStorage } from '../../storage/durable-objects.ts'
import type { SqliteDatabase, SqliteStatement } from '../sqlite-tables/database.ts'
import { SqliteEvents, type WrittenEvent } from '../sqlite-tables/events.ts'
import { OwnerRow } from '../sqlite-tables/owner-row.ts'
import { makeTables } from '../sqlite-tables/schema.ts'
import { type Commits, type SqliteTables, tablesOf } from '../sqlite-tables/storage.ts'

/** The tables of an object, and its record of what runs. */
export type ObjectTables = SqliteTables & { readonly owner: OwnerRow }

/** Opens the storage of an object: makes the tables if there are none, and counts a crash. */
export function openStorage(storage: ObjectStorage): ObjectTables {
  const database = databaseOf(storage.sql)
  return storage.transactionSync(() => {
    makeTables(database)
    const owner = new ObjectOwner(database)
    // The JSON of a key, since lone surrogates would all become one character. Workers hash asynchronously only.
    const events = new SqliteEvents(database, JSON.stringify)
    return { ...tablesOf(database, events), owner }
  })
}

export interface ObjectCommits extends Commits {
  /** Carries out a write in a transaction. */
  now<T>(write: () => T): T
  accept(written: WrittenEvent): number | undefined
}

/**
 * Writes immediately: the runtime commits the writes of one turn together, and holds back answers and requests of the object
 * until they are on disk.
 */
export const commitsOf = (storage: ObjectStorage, events: SqliteEvents): ObjectCommits => ({
  deferred: 0,
  now: (write) => storage.transactionSync(write),
  accept: (written) => storage.transactionSync(() => events.accept(written)),
  add: async (write) => storage.transactionSync(write),
  // No other instance of the object runs.
  isOwner: () => true,
})

/**
 * The row of an object. An object never knows that it ends, so each one that finds due events recovers: the one before was
 * evicted, replaced or crashed, or the time of a retry came. The platform runs one instance at a time, and their token is
 * always the same.
 */
class ObjectOwner extends OwnerRow {
  constructor(database: SqliteDatabase) {
    super(database, 'object')
    if (this.sql.hasWork.get(Date.now()) !== undefined) this.begin(true)
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
