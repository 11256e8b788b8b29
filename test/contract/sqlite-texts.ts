import { openDatabase } from '../../src/inbox/sqlite/driver.ts'
import type { SqliteDatabase } from '../../src/inbox/sqlite.ts'

/** Makes a table of texts in the file, which handlers and the application write to in their transactions. */
export function textsIn(path: string) {
  const database = openDatabase(path)
  database.exec('CREATE TABLE written (content TEXT)')
  return {
    database,
    write: (client: SqliteDatabase, text: string) => client.prepare('INSERT INTO written VALUES (?)').run(text),
    run: (client: SqliteDatabase, sql: string) => void client.exec(sql),
    own(end: string, run: (client: object) => unknown) {
      database.exec('BEGIN')
      run(database)
      database.exec(end)
    },
    texts: () =>
      (database.prepare('SELECT content FROM written').all() as { content: string }[]).map((row) => row.content),
    close: () => database.close(),
  }
}
