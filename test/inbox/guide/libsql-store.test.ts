import { join } from 'node:path'
import { createClient, type Transaction } from '@libsql/client'
import { describe, expect, test } from 'vitest'
import { createReceiver, unverified } from '../../../src/index.ts'
import { eventStoreContract } from '../../../src/testing/contract/event-store.ts'
import { inboxContract } from '../../../src/testing/contract/inbox.ts'
import { deliver } from '../../../src/testing/index.ts'
import { silent } from '../../support/silent.ts'
import { temporaryFolder } from '../../support/temporary-folder.ts'
import { future, upgraded } from '../unreadable.suite.ts'
import { LibsqlStore, libsqlInbox } from './libsql-store.ts'

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

describe('as an event store', () => {
  eventStoreContract(
    async () => {
      const database = await freshDatabase()
      return { ...database, open: (host) => new LibsqlStore(host, database.url), crash() {} }
    },
    { test, expect },
    { shared: false },
  )
})

describe('as an inbox', () => {
  inboxContract(
    async () => {
      const { url, ...database } = await freshDatabase()
      return { inbox: libsqlInbox(url), ...database }
    },
    { test, expect },
    { transactions: true, reads: true, expects: true, pauses: true, strict: true, limits: true },
  )
})

test('an unreadable delivery that is parsed again begins its expectations', async () => {
  const { url, close } = await freshDatabase()
  const receiver = createReceiver({ verify: unverified(), inbox: libsqlInbox(url), logger: silent })
  receiver.expect('encoding.finished', { then: 'encoding.failed', within: '1 h' }, () => {})
  await deliver(receiver, future.replace('2026-03-01T12:00:00Z', new Date().toISOString()))
  const [deadLetter] = await receiver.inbox.deadLetters.list()
  expect(await upgraded(async () => receiver.inbox.deadLetters.replay(deadLetter?.key ?? ''))).toBe(true)
  expect(await receiver.inbox.expected?.()).toMatchObject([{ mediaId: 'm1' }])
  await receiver.close()
  close()
})
