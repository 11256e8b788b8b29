import { describe, expectTypeOf, test } from 'vitest'
import { type SqliteDatabase, type SqliteTransactional, sqliteInbox } from '../../src/inbox/sqlite.ts'
import {
  createReceiver,
  type EncodingFinishedEvent,
  type Handler,
  type HandlerContext,
  type Handlers,
  type InboxDefinition,
  type MediaEvent,
  memoryInbox,
  type Receiver,
  type Transactional,
  unverified,
} from '../../src/index.ts'
import { withTransactions } from '../../src/testing/index.ts'

interface Client {
  query(sql: string): Promise<number>
}

const verify = unverified()
declare const inbox: InboxDefinition<Transactional<Client>>

describe('the handlers of a receiver whose inbox has a database', () => {
  test('get a transaction with the type of its client', () => {
    const receiver = createReceiver({ verify, inbox })
    expectTypeOf(receiver).toEqualTypeOf<Receiver<Transactional<Client>>>()
    receiver.on('encoding.finished', async (event, context) => {
      expectTypeOf(event).toEqualTypeOf<EncodingFinishedEvent>()
      expectTypeOf(context).toEqualTypeOf<HandlerContext & Transactional<Client>>()
      const rows = await context.transaction((client) => {
        expectTypeOf(client).toEqualTypeOf<Client>()
        return client.query(event.mediaId)
      })
      expectTypeOf(rows).toBeNumber()
    })
    receiver
      .on(['encoding.finished', 'encoding.failed'], (_, { transaction }) => transaction((client) => client.query('')))
      .onAny((_, { transaction }) => transaction(() => 'any value'))
      .onError(() => {})
      .onAny((_, { transaction }) => transaction((client) => client.query('')))
  })

  test('do not compile with a client of another type', () => {
    const receiver = createReceiver({ verify, inbox })
    // @ts-expect-error the client has no such method
    receiver.onAny((_, { transaction }) => transaction((client) => client.execute('')))
    // @ts-expect-error it is a client of another database
    receiver.onAny((_, { transaction }) => transaction((_client: { execute(): void }) => {}))
  })

  test('can be given as an option', () => {
    createReceiver({
      verify,
      inbox,
      handlers: {
        'encoding.finished': async (event, { transaction, key }) => {
          expectTypeOf(event).toEqualTypeOf<EncodingFinishedEvent>()
          expectTypeOf(key).toBeString()
          expectTypeOf(await transaction((client) => client.query(''))).toBeNumber()
        },
      },
    })
    const handlers: Handlers<Transactional<Client>> = {
      'encoding.failed': (_, context) => context.transaction(() => 1),
    }
    createReceiver({ verify, inbox, handlers })
  })

  test('may use less of the context, or none', () => {
    const receiver = createReceiver({ verify, inbox })
    const plain = (_: MediaEvent, context: HandlerContext) => context.key
    const named: Handler<EncodingFinishedEvent, Transactional<Client>> = (_, { transaction }) => transaction(() => {})
    receiver
      .on('encoding.finished', plain)
      .on('encoding.finished', named)
      .on('encoding.finished', () => {})
    receiver.off('encoding.finished', named).off(plain).off(named)
    createReceiver({ verify, inbox, handlers: { 'encoding.finished': plain } })
  })
})

describe('the handlers of a receiver whose inbox has no database', () => {
  test('do not compile with a transaction', () => {
    const receiver = createReceiver({ verify, inbox: memoryInbox() })
    expectTypeOf(receiver).toEqualTypeOf<Receiver>()
    // @ts-expect-error the memory inbox has none
    receiver.on('encoding.finished', (_, { transaction }) => transaction)
    // @ts-expect-error nor has the default inbox, which is the memory inbox
    createReceiver({ verify }).onAny((_, { transaction }) => transaction)
    // @ts-expect-error nor have handlers that are given as an option
    createReceiver({ verify, handlers: { 'encoding.finished': (_, { transaction }) => transaction } })
    // @ts-expect-error it needs an inbox with a database
    receiver.onAny((_, __: HandlerContext & Transactional<Client>) => {})
  })
})

describe('an inbox or a receiver', () => {
  test('with transactions fits if none are needed', () => {
    expectTypeOf(inbox).toExtend<InboxDefinition>()
    expectTypeOf<Receiver<Transactional<Client>>>().toExtend<Receiver>()
  })

  test('without transactions does not fit if they are needed', () => {
    expectTypeOf(memoryInbox()).not.toExtend<InboxDefinition<Transactional<Client>>>()
    expectTypeOf<Receiver>().not.toExtend<Receiver<Transactional<Client>>>()
    // @ts-expect-error it has no transactions
    createReceiver<Transactional<Client>>({ verify, inbox: memoryInbox() })
  })
})

describe('withTransactions', () => {
  test('gives an inbox the transactions of a client', () => {
    expectTypeOf(withTransactions<Client>(memoryInbox(), async (run) => run({ query: async () => 1 }))).toEqualTypeOf(
      inbox,
    )
    const typed: InboxDefinition<Transactional<Client>> = withTransactions(memoryInbox(), (run) =>
      run({ query: async () => 1 }),
    )
    createReceiver({ verify, inbox: typed }).onAny((_, { transaction }) => transaction((client) => client.query('')))
    // @ts-expect-error it is another client
    withTransactions<Client>(memoryInbox(), (run) => run('client'))
  })
})

describe('sqliteInbox', () => {
  /** A database of another driver, such as better-sqlite3. */
  interface AnotherDatabase extends SqliteDatabase {
    pragma(source: string): unknown
  }
  const path = 'events.db'
  const database = {} as AnotherDatabase

  test('gives the handlers its own connection, or the one that it was given', () => {
    expectTypeOf(sqliteInbox({ path })).toEqualTypeOf<InboxDefinition<SqliteTransactional<SqliteDatabase>>>()
    expectTypeOf(sqliteInbox({ database })).toEqualTypeOf<InboxDefinition<SqliteTransactional<AnotherDatabase>>>()
    createReceiver({ verify, inbox: sqliteInbox({ database, concurrency: 4 }) }).onAny(async (_, { transaction }) => {
      const result = await transaction((given) => {
        expectTypeOf(given).toEqualTypeOf<AnotherDatabase>()
        given.pragma('foreign_keys = ON')
        return given.prepare('INSERT').run().changes
      })
      expectTypeOf(result).toEqualTypeOf<number | bigint>()
      expectTypeOf(await transaction(() => {})).toBeVoid()
    })
  })

  test('can be given with the handlers', () => {
    createReceiver({
      verify,
      inbox: sqliteInbox({ path }),
      handlers: { 'encoding.finished': (_, { transaction }) => transaction((given) => void given.exec('DELETE')) },
    })
  })

  test('does not compile with an asynchronous function', () => {
    const receiver = createReceiver({ verify, inbox: sqliteInbox({ path }) })
    // @ts-expect-error it is asynchronous
    receiver.onAny((_, { transaction }) => transaction(async (given) => void given.exec('DELETE')))
    // @ts-expect-error it returns a promise
    receiver.onAny((_, { transaction }) => transaction(() => Promise.resolve(1)))
    // @ts-expect-error it may return a promise
    receiver.onAny((_, { transaction }) => transaction((given) => (given ? 1 : Promise.resolve(1))))
  })

  test('does not compile with something that is not a database', () => {
    // @ts-expect-error it has no methods
    sqliteInbox({ database: {} })
    // @ts-expect-error a path is text
    sqliteInbox({ path: 7 })
    // @ts-expect-error there is no such option
    sqliteInbox({ path, maxEvents: 7 })
  })
})
