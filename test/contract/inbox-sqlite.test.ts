import { describe, expect, test } from 'vitest'
import { sqliteInbox } from '../../src/inbox/sqlite.ts'
import { drivers, openOldestLibsql, temporaryFile } from '../inbox/sqlite/sqlite-tests.ts'
import { everyFeature } from './every-feature.ts'
import { textsIn } from './sqlite-texts.ts'
import { inboxContract } from './suites/inbox.ts'

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
