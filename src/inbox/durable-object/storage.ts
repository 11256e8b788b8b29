import type { ObjectSql, ObjectStorage } from '../../storage/durable-objects.ts'
import type { SqliteDatabase, SqliteStatement } from '../sqlite-tables/database.ts'
import { SqliteEvents, type WrittenEvent } from '../sqlite-tables/events.ts'
import { OwnerRow } from '../sqlite-tables/owner-row.ts'
import { makeTables } from '../sqlite-tables/schema.ts'
import { type Commits, type SqliteTables, tablesOf } from '../sqlite-tables/storage.ts'

export type ObjectTables = SqliteTables & { readonly owner: OwnerRow }

/** Opens an object's storage: creates missing tables, and counts a crash. */
export function openStorage(storage: ObjectStorage): ObjectTables {
  const database = databaseOf(storage.sql)
  return storage.transactionSync(() => {
    makeTables(database)
    const owner = new ObjectOwner(database)
    // Keys unhashed, because Workers only hash asynchronously. JSON, because UTF-8 would merge all lone surrogates.
    const events = new SqliteEvents(database, JSON.stringify)
    return { ...tablesOf(database, events), owner }
  })
}

export interface ObjectCommits extends Commits {
  now<T>(write: () => T): T
  accept(written: WrittenEvent): number | undefined
}

/** Writes synchronously. The runtime holds back an object's answers until the writes of the turn are on disk. */
export const commitsOf = (storage: ObjectStorage, events: SqliteEvents): ObjectCommits => ({
  deferred: 0,
  now: (write) => storage.transactionSync(write),
  accept: (written) => storage.transactionSync(() => events.accept(written)),
  add: async (write) => storage.transactionSync(write),
  // The platform runs one instance of an object.
  isOwner: () => true,
})

/**
 * An object is never told that it ends, so every one that finds due events recovers: the last instance crashed, was
 * evicted or replaced, or a retry came due. Only one instance runs at a time, so the token is constant.
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

/** The runtime caches prepared statements by their text. */
function statementOf(sql: ObjectSql, query: string): SqliteStatement {
  const all = (...parameters: unknown[]): unknown[] => sql.exec(query, ...parameters).toArray()
  return {
    all,
    get: (...parameters) => all(...parameters)[0],
    run(...parameters) {
      sql.exec(query, ...parameters)
      // The cursor's own count includes index writes.
      const [counts] = sql.exec('SELECT changes() AS changes, last_insert_rowid() AS lastInsertRowid').toArray()
      return counts as ReturnType<SqliteStatement['run']>
    },
  }
}
