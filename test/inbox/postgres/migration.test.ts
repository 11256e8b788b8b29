import { Client } from 'pg'
import { afterAll, beforeAll, describe, expect, onTestFinished, test, vi } from 'vitest'
import { checkTables, prepareSchema } from '../../../src/inbox/postgres/prepare-schema.ts'
import { type Migration, migrations, migrationsFrom } from '../../../src/inbox/postgres/schema.ts'
import { migrate, postgresInbox } from '../../../src/inbox/postgres.ts'
import { createReceiver, unverified } from '../../../src/index.ts'
import { eventOf } from '../../support/inbox.ts'
import { findPostgres } from '../../support/postgres/find-postgres.ts'
import { PostgresServer } from '../../support/postgres/postgres-server.ts'
import { silent } from '../../support/silent.ts'

/**
 * How the next migration is written: it adds what the next release needs, and what this one can leave alone. In
 * `schema.ts` it would be the second element of `migrations`.
 */
const makeNext: Migration = (schema, ifNotExists) => `
ALTER TABLE ${schema}.event ADD COLUMN ${ifNotExists}note text;
CREATE INDEX ${ifNotExists}event_note ON ${schema}.event (note) WHERE note IS NOT NULL;
`
const next = [...migrations, makeNext]
const isNext = { version: 1, tables: next.length }

describe.skipIf(!findPostgres())('the next version of the tables', () => {
  let server: PostgresServer
  beforeAll(async () => {
    server = await PostgresServer.start()
  })
  afterAll(() => server?.remove())

  let schemas = 0

  /** Makes the tables of this release. */
  async function current() {
    const schema = `inbox_${++schemas}`
    expect(await migrate(server.url, { schema })).toBe(true)
    return schema
  }

  async function connect(connectionString = server.url) {
    const client = new Client({ connectionString })
    onTestFinished(() => client.end())
    await client.connect()
    return client
  }

  /** Starts a receiver of this release, which is closed with the test. */
  async function serve(schema: string) {
    const handled: string[] = []
    const inbox = postgresInbox({ connection: server.url, schema })
    const receiver = createReceiver({ verify: unverified(), inbox, logger: silent })
    receiver.onAny(({ key }) => void handled.push(key))
    onTestFinished(async () => void (await receiver.close({ timeoutMs: 1_000 })))
    await receiver.ready()
    return { receiver, handled }
  }

  const versionOf = async (schema: string) => (await server.query(`SELECT * FROM ${schema}.version`))[0]

  test('is made of this one, whose processes continue to work and can be started again', async () => {
    const schema = await current()
    const { receiver, handled } = await serve(schema)
    expect(await prepareSchema(await connect(), schema, next)).toBe(true)
    expect(await versionOf(schema)).toEqual(isNext)
    await receiver.inbox.accept(eventOf('one'))
    await vi.waitFor(() => expect(handled).toEqual(['one']))
    const started = await serve(schema)
    await receiver.close()
    await started.receiver.inbox.accept(eventOf('two'))
    await vi.waitFor(() => expect(started.handled).toEqual(['two']))
    expect(await migrate(server.url, { schema })).toBe(false)
    expect(await versionOf(schema)).toEqual(isNext)
  })

  test('is made once, however many processes start at a time', async () => {
    const schema = await current()
    const changed = await Promise.all(
      Array.from({ length: 6 }, async () => prepareSchema(await connect(), schema, next)),
    )
    expect(changed.filter((isChanged) => isChanged)).toEqual([true])
  })

  test('is made of nothing', async () => {
    const schema = `inbox_${++schemas}`
    expect(await prepareSchema(await connect(), schema, next)).toBe(true)
    expect(await versionOf(schema)).toEqual(isNext)
    await serve(schema)
  })

  test('is made by the printed SQL, which changes nothing the second time', async () => {
    const schema = await current()
    for (let time = 0; time < 2; time++) {
      await server.query(`BEGIN; ${migrationsFrom(schema, 0, { all: next, ifNotExists: 'IF NOT EXISTS ' })}; COMMIT`)
      expect(await versionOf(schema)).toEqual(isNext)
    }
    expect(await prepareSchema(await connect(), schema, next)).toBe(false)
  })

  test('keeps the processes of this one out if its migration says that they cannot use it', async () => {
    const schema = await current()
    const makeBreaking: Migration = (name) => `
ALTER TABLE ${name}.event RENAME COLUMN event TO payload;
UPDATE ${name}.version SET version = 2;
`
    await prepareSchema(await connect(), schema, [...migrations, makeBreaking])
    await expect(serve(schema)).rejects.toMatchObject({
      code: 'unavailable',
      message: expect.stringContaining(`a newer version of media-webhooks made the schema ${schema}`),
    })
  })

  test('must be made before it is looked into, which an error tells', async () => {
    const schema = await current()
    await expect(checkTables(await connect(), schema, next)).rejects.toMatchObject({
      code: 'unavailable',
      message: expect.stringMatching(/the tables .* need an update: start a receiver .*, or run ".* migrate"/),
    })
    expect(await versionOf(schema)).toEqual({ version: 1, tables: 1 })
  })

  test('is not made by a user who does not own the tables, which an error tells', async () => {
    const schema = await current()
    await server.query(`CREATE ROLE application LOGIN; GRANT USAGE ON SCHEMA ${schema} TO application;
      GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA ${schema} TO application`)
    const application = await connect(server.url.replace('postgres@', 'application@'))
    await expect(prepareSchema(application, schema, next)).rejects.toMatchObject({
      code: 'unavailable',
      message: expect.stringMatching(/this user may not update the tables .*: run the SQL that "media-webhooks inbox/),
    })
  })

  test('is made without holding up the statements of others, while one of them holds a lock', async () => {
    const schema = await current()
    const blocker = await connect()
    await blocker.query(`BEGIN; LOCK TABLE ${schema}.event IN ROW EXCLUSIVE MODE`)
    const migrated = prepareSchema(await connect(), schema, next)
    const isWaiting = () => server.query("SELECT FROM pg_stat_activity WHERE wait_event_type = 'Lock'")
    await vi.waitFor(async () => expect(await isWaiting()).toHaveLength(1))
    // It waits behind the migration, which must not wait until the lock is free.
    await server.query(`SET lock_timeout = '5s'; DELETE FROM ${schema}.event`)
    expect(await versionOf(schema)).toEqual({ version: 1, tables: 1 })
    await blocker.query('COMMIT')
    expect(await migrated).toBe(true)
  })
})
