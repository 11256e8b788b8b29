import type { ObjectSql, ObjectStorage } from '../../storage/durable-objects.ts'
import type { SqliteDatabase, SqliteStatement } from '../sqlite-tables/database.ts'
import { SqliteDeadLetters } from '../sqlite-tables/dead-letters.ts'
import { SqliteEvents } from '../sqlite-tables/events.ts'
import { makeTables } from '../sqlite-tables/schema.ts'
import type { SqliteTables } from '../sqlite-tables/storage.ts'
import { ObjectCrashes } from './crashes.ts'

/** The open storage of an object that is an inbox. */
export interface OpenStorage extends SqliteTables {
  readonly database: SqliteDatabase
  readonly crashes: ObjectCrashes
}

/** Opens the storage: makes the tables if there are none, and looks for traces of a crash. */
export function openStorage(storage: ObjectStorage): OpenStorage {
  const database = databaseOf(storage.sql)
  return storage.transactionSync(() => {
    makeTables(database)
    const crashes = new ObjectCrashes(database)
    // The JSON of a key, since lone surrogates would all become one character. Workers hash asynchronously only.
    const events = new SqliteEvents(database, JSON.stringify)
    return { database, events, deadLetters: new SqliteDeadLetters(database, events), crashes }
  })
}

const databaseOf = (sql: ObjectSql): SqliteDatabase => ({
  exec: (query) => sql.exec(query),
  prepare: (query) => new ObjectStatement(sql, query),
  close() {},
})

/** A statement. The runtime caches those that it has prepared, by their text. */
class ObjectStatement implements SqliteStatement {
  readonly #sql: ObjectSql
  readonly #query: string

  constructor(sql: ObjectSql, query: string) {
    this.#sql = sql
    this.#query = query
  }

  run(...parameters: unknown[]): { changes: number; lastInsertRowid: number } {
    this.#sql.exec(this.#query, ...parameters)
    // The cursor's own number counts what was written to indexes too.
    const [counts] = this.#sql.exec('SELECT changes() AS changes, last_insert_rowid() AS lastInsertRowid').toArray()
    return counts as { changes: number; lastInsertRowid: number }
  }

  get(...parameters: unknown[]): unknown {
    return this.all(...parameters)[0]
  }

  all(...parameters: unknown[]): unknown[] {
    return this.#sql.exec(this.#query, ...parameters).toArray()
  }
}
