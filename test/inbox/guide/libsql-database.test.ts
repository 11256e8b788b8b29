import { join } from 'node:path'
import { createClient, type Transaction } from '@libsql/client'
import { expect, test } from 'vitest'
import { inboxContract } from '../../../src/testing/contract/inbox.ts'
import { temporaryFolder } from '../../support/temporary-folder.ts'
import { libsqlInbox } from './libsql-database.ts'

/** Makes a database of its own, with a table of the application. */
async function freshDatabase() {
  const url = `file:${join(await temporaryFolder(), 'events.db')}`
  const client = createClient({ url })
  await client.execute('CREATE TABLE written (content TEXT)')
  return {
    url,
    transactions: {
      write: (tx: Transaction, text: string) => tx.execute({ sql: 'INSERT INTO written VALUES (?)', args: [text] }),
      texts: async () => (await client.execute('SELECT content FROM written')).rows.map(({ content }) => `${content}`),
    },
    close: () => client.close(),
  }
}

inboxContract(
  async () => {
    const { url, ...database } = await freshDatabase()
    return { inbox: libsqlInbox(url), ...database }
  },
  { test, expect },
  { transactions: true, reads: true, expects: true, pauses: true, strict: true, limits: true, late: true },
)
