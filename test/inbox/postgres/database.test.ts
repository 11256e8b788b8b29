import { describe, expect, onTestFinished, test } from 'vitest'
import { Database } from '../../../src/inbox/postgres/database.ts'
import { findPostgres } from '../../support/postgres/find-postgres.ts'
import { silent } from '../../support/silent.ts'
import { postgresTests } from './postgres-tests.ts'

describe.skipIf(!findPostgres())('a connection of the inbox', () => {
  const postgres = postgresTests()
  const readTimeout = "SELECT setting, source FROM pg_settings WHERE name = 'statement_timeout'"

  function database(listen: boolean) {
    const options = { schema: postgres.schema, timeoutMs: 60_000, listen, host: { logger: silent } }
    const opened = new Database({ config: { connectionString: postgres.server.url }, ...options })
    onTestFinished(() => opened.close())
    return opened
  }

  test('begins with its settings, once Postgres is known to be reached directly', async () => {
    const opened = database(true)
    opened.start(async () => {})
    await opened.ready()
    // The source of a setting that a statement has set is "session".
    const limited = [{ setting: '60000', source: 'client' }]
    expect(await opened.query(readTimeout)).toEqual(limited)
    const client = await opened.connect()
    onTestFinished(() => client.end())
    expect((await client.query(readTimeout)).rows).toEqual(limited)
  })

  test('sets nothing behind a transaction pooler', async () => {
    const opened = database(false)
    opened.start(async () => {})
    await opened.ready()
    expect(await opened.query(readTimeout)).toEqual([{ setting: '0', source: 'default' }])
  })

  const preparedNames = 'SELECT name FROM pg_prepared_statements'

  test('keeps a statement with a name, so that it is planned once', async () => {
    const opened = database(true)
    expect(await opened.query('SELECT $1::text AS word', ['one'], 'say')).toEqual([{ word: 'one' }])
    expect(await opened.query('SELECT $1::text AS word', ['two'], 'say')).toEqual([{ word: 'two' }])
    expect(await opened.query(preparedNames)).toEqual([{ name: 'say' }])
  })

  test('keeps no statement behind a transaction pooler', async () => {
    const opened = database(false)
    expect(await opened.query('SELECT $1::text AS word', ['one'], 'say')).toEqual([{ word: 'one' }])
    expect(await opened.query(preparedNames)).toEqual([])
  })

  const saying = (database: Database, word: string) =>
    database.batchPrepared({
      name: 'say',
      statement: (parameter) => `SELECT ${parameter(1)}::text AS word`,
      values: [word],
      message: (statement) => `BEGIN; ${statement}; COMMIT`,
    })

  test('keeps a statement that is sent among others', async () => {
    const opened = database(true)
    expect(await saying(opened, 'one')).toEqual([[], [{ word: 'one' }], []])
    expect(await saying(opened, "it's two")).toEqual([[], [{ word: "it's two" }], []])
    expect(await opened.query(preparedNames)).toEqual([{ name: 'say' }])
  })

  test('sends a statement among others as a text behind a transaction pooler', async () => {
    const opened = database(false)
    expect(await saying(opened, "it's one")).toEqual([[], [{ word: "it's one" }], []])
    expect(await opened.query(preparedNames)).toEqual([])
  })

  test('prepares the statement again after an error has ended its transaction', async () => {
    const opened = database(true)
    const dividing = (by: number) =>
      opened.batchPrepared({
        name: 'divide',
        statement: (parameter) => `SELECT 6 / ${parameter(1)}::integer AS result`,
        values: [by],
        message: (statement) => `BEGIN; ${statement}; COMMIT`,
      })
    await expect(dividing(0)).rejects.toThrow('division by zero')
    expect(await dividing(2)).toEqual([[], [{ result: 3 }], []])
  })
})
