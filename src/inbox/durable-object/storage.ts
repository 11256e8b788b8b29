import type { ObjectSql } from '../../storage/durable-objects.ts'
import type { SqliteDatabase, SqliteStatement } from '../sqlite/connection.ts'

/** The SQL of an object's storage, with the interface of SQLite's drivers. */
export const databaseOf = (sql: ObjectSql): SqliteDatabase => ({
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
