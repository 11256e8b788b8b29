import { describe, expect, onTestFinished, test } from 'vitest'
import { Connections } from '../../../src/inbox/postgres/connections.ts'
import { namedQuery, query, type Rows } from '../../../src/inbox/postgres/step.ts'
import { findPostgres } from '../../support/postgres/find-postgres.ts'
import { postgresTests } from './postgres-tests.ts'

describe.skipIf(!findPostgres())('a connection of the inbox', () => {
  const postgres = postgresTests()

  function connections(prepares: boolean) {
    const config = { connectionString: postgres.server.url }
    const opened = new Connections({ config, schema: postgres.schema, timeoutMs: 60_000, prepares })
    onTestFinished(() => opened.close())
    if (prepares) opened.pin()
    const send = (...parts: Parameters<Connections['send']>[0]['parts']) => opened.send({ on: 'handling', parts })
    return { opened, send }
  }

  const readTimeout = "SELECT setting, source FROM pg_settings WHERE name = 'statement_timeout'"
  const preparedNames = 'SELECT name FROM pg_prepared_statements'
  const say = (word: string) => namedQuery('say', 'SELECT $1::text AS word', word)

  test('begins with its settings, once Postgres is known to be reached directly', async () => {
    const { opened, send } = connections(true)
    // The source of a setting that a statement has set is "session".
    const limited = [{ setting: '60000', source: 'client' }]
    expect(await send(readTimeout)).toEqual([limited])
    const client = await opened.connect()
    onTestFinished(() => client.end())
    expect((await client.query(readTimeout)).rows).toEqual(limited)
  })

  test('sets nothing, and keeps no statement, behind a transaction pooler', async () => {
    const { send } = connections(false)
    expect(await send(readTimeout)).toEqual([[{ setting: '0', source: 'default' }]])
    expect(await send(say("it's one"))).toEqual([[{ word: "it's one" }]])
    expect(await send('BEGIN', say("it's one"), 'COMMIT')).toEqual([[], [{ word: "it's one" }], []])
    expect(await send(preparedNames)).toEqual([[]])
  })

  test('keeps a statement with a name, so that it is planned once, alone or among others', async () => {
    const { send } = connections(true)
    const all: (readonly Rows[])[] = []
    for (const word of ['one', "it's two"]) all.push(await send(say(word)), await send('BEGIN', say(word), 'COMMIT'))
    expect(all).toEqual([
      [[{ word: 'one' }]],
      [[], [{ word: 'one' }], []],
      [[{ word: "it's two" }]],
      [[], [{ word: "it's two" }], []],
    ])
    expect((await send(preparedNames))[0]).toHaveLength(2)
  })

  test('prepares the statement again after an error has ended its transaction', async () => {
    const { send } = connections(true)
    const divide = (by: number) => namedQuery('divide', 'SELECT 6 / $1::integer AS result', by)
    await expect(send('BEGIN', divide(0), 'COMMIT')).rejects.toThrow('division by zero')
    expect(await send('BEGIN', divide(2), 'COMMIT')).toEqual([[], [{ result: 3 }], []])
  })

  test('writes values of any text as they are', async () => {
    const { send } = connections(true)
    const texts = ['', '"', "'", '\\', '{}', 'NULL', '$1', 'a,b', '\u{1f600}', 'é', '$event']
    const text = 'SELECT t FROM unnest($1::text[]) WITH ORDINALITY AS u (t, n) ORDER BY n'
    const list = namedQuery('list', text, texts)
    for (const [rows] of [
      await send(list),
      (await send('BEGIN', list, 'COMMIT')).slice(1),
      await send(query(text, texts)),
    ])
      expect(rows?.map(({ t }) => t)).toEqual(texts)
  })
})
