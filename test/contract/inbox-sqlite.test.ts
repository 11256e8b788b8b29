import { describe, expect, test } from 'vitest'
import { openDatabase } from '../../src/inbox/sqlite/driver.ts'
import { type SqliteDatabase, sqliteInbox } from '../../src/inbox/sqlite.ts'
import { drivers, openOldestLibsql, temporaryFile } from '../inbox/sqlite/sqlite-tests.ts'
import { everyFeature } from './every-feature.ts'
import { inboxContract } from './suites/inbox.ts'

/** Makes a table of texts in the file, which handlers write to in their transactions. */
function textsIn(path: string) {
  const database = openDatabase(path)
  database.exec('CREATE TABLE written (content TEXT)')
  return {
    write: (client: SqliteDatabase, text: string) => client.prepare('INSERT INTO written VALUES (?)').run(text),
    run: (client: SqliteDatabase, sql: string) => void client.exec(sql),
    texts: () =>
      (database.prepare('SELECT content FROM written').all() as { content: string }[]).map((row) => row.content),
    close: () => database.close(),
  }
}

inboxContract(
  async () => {
    const { path, remove } = await temporaryFile()
    const transactions = textsIn(path)
    return {
      inbox: sqliteInbox({ path }),
      transactions,
      close() {
        transactions.close()
        return remove()
      },
    }
  },
  { test, expect },
  everyFeature,
)

describe.each(Object.entries({ ...drivers, 'the oldest libsql': openOldestLibsql }))(
  'with a database of %s',
  (_, open) => {
    inboxContract(
      async () => {
        const { path, remove } = await temporaryFile()
        const transactions = textsIn(path)
        const database = open(path)
        return {
          inbox: sqliteInbox({ database }),
          transactions,
          async close() {
            transactions.close()
            database.close()
            await remove()
          },
        }
      },
      { test, expect },
      everyFeature,
    )
  },
)
