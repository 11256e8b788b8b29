import { openDatabase } from '../../../src/inbox/sqlite/driver.ts'
import type { SqliteDatabase } from '../../../src/inbox/sqlite.ts'

/** Matches no statement. */
export const nothing = /(?!)/

/** Opens a database that reports the statements that it runs, and fails to run those that match `failing.sql`. */
export function watched(path: string) {
  const database = openDatabase(path)
  const ran: string[] = []
  const failing = { sql: nothing }
  const run = <T>(sql: string, step: () => T): T => {
    ran.push(sql)
    if (failing.sql.test(sql)) throw new Error('disk I/O error')
    return step()
  }
  const watching: SqliteDatabase = {
    exec: (sql) => run(sql, () => database.exec(sql)),
    prepare(sql) {
      const statement = database.prepare(sql)
      return {
        run: (...parameters) => run(sql, () => statement.run(...parameters)),
        get: (...parameters) => run(sql, () => statement.get(...parameters)),
        all: (...parameters) => run(sql, () => statement.all(...parameters)),
      }
    },
    close: () => database.close(),
  }
  const count = (start: string) => ran.filter((sql) => sql.startsWith(start)).length
  return { database: watching, ran, failing, count }
}
