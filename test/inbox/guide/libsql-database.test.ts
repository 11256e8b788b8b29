import { join } from 'node:path'
import { createClient, type Transaction } from '@libsql/client'
import { describe, expect, test } from 'vitest'
import { everyFeature } from '../../contract/every-feature.ts'
import { databaseContract } from '../../contract/suites/database.ts'
import { inboxContract } from '../../contract/suites/inbox.ts'
import { temporaryFolder } from '../../support/temporary-folder.ts'
import { LibsqlDatabase, libsqlInbox } from './libsql-database.ts'

const freshUrl = async () => `file:${join(await temporaryFolder(), 'events.db')}`

describe('the database', () => {
  databaseContract(
    async () => {
      const url = await freshUrl()
      return { open: (host) => new LibsqlDatabase(host, url, 50), crash() {} }
    },
    { test, expect },
    { shared: false },
  )
})

describe('the inbox', () => {
  inboxContract(
    async () => {
      const url = await freshUrl()
      // A table of the application.
      const client = createClient({ url })
      await client.execute('CREATE TABLE written (content TEXT)')
      const transactions = {
        write: (tx: Transaction, text: string) => tx.execute({ sql: 'INSERT INTO written VALUES (?)', args: [text] }),
        texts: async () =>
          (await client.execute('SELECT content FROM written')).rows.map(({ content }) => `${content}`),
      }
      return { inbox: libsqlInbox(url), transactions, close: () => client.close() }
    },
    { test, expect },
    everyFeature,
  )
})
