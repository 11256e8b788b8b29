import { describe, expect, test } from 'vitest'
import { sqliteInbox } from '../../src/inbox/sqlite.ts'
import { inboxContract } from '../../src/testing/contract/inbox.ts'
import { drivers, temporaryFile } from '../inbox/sqlite/fixture.ts'

inboxContract(
  async () => {
    const { path, remove } = await temporaryFile()
    return { inbox: sqliteInbox({ path }), close: remove }
  },
  { test, expect },
)

describe.each(Object.entries(drivers))('with a database of %s', (_, open) => {
  inboxContract(
    async () => {
      const { path, remove } = await temporaryFile()
      const database = open(path)
      return {
        inbox: sqliteInbox({ database }),
        async close() {
          database.close()
          await remove()
        },
      }
    },
    { test, expect },
  )
})
