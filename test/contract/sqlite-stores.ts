import { openDatabase } from '../../src/inbox/sqlite/driver.ts'
import { ownFile } from '../../src/inbox/sqlite/file.ts'
import { FileStore } from '../../src/inbox/sqlite/store.ts'
import type { SqliteDatabase } from '../../src/inbox/sqlite.ts'
import { limitsOf } from '../../src/inbox/sqlite-tables/storage.ts'
import type { EventStoreSubject } from '../../src/testing/contract/event-store.ts'
import { crashed, freshPath } from '../inbox/sqlite/sqlite-tests.ts'

/** Makes a subject in a file of its own. */
export async function sqliteStores(): Promise<EventStoreSubject> {
  let path = await freshPath()
  const read = <Row>(run: (database: SqliteDatabase) => Row): Row => {
    const database = openDatabase(path)
    try {
      return run(database)
    } finally {
      database.close()
    }
  }
  read((database) => database.exec('CREATE TABLE written (content TEXT)'))
  return {
    open: (host) => FileStore.open(host, ownFile(path), limitsOf({})),
    async crash() {
      path = await crashed(path)
    },
    transactions: {
      write: (client: SqliteDatabase, text: string) => client.prepare('INSERT INTO written VALUES (?)').run(text),
      texts: () =>
        read((database) => database.prepare('SELECT content FROM written').all() as { content: string }[]).map(
          ({ content }) => content,
        ),
    },
  }
}
