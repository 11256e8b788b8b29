import { Pool } from 'pg'
import { afterAll, beforeAll, describe, expect, onTestFinished, test, vi } from 'vitest'
import {
  migrate,
  migrationSql,
  openInboxDatabase,
  type PostgresInboxOptions,
  postgresInbox,
} from '../../../src/inbox/postgres.ts'
import { createReceiver, type MediaEvent, unverified } from '../../../src/index.ts'
import { deliver, samplePayload } from '../../../src/testing/index.ts'
import { findPostgres } from '../../support/postgres/find-postgres.ts'
import { PostgresServer } from '../../support/postgres/postgres-server.ts'
import { startReplica } from '../../support/postgres/replica.ts'
import { silent } from '../../support/silent.ts'

let events = 0

/** Starts a receiver, whose handler reads in a transaction. It is closed with the test. */
function receive(options: PostgresInboxOptions) {
  const logged: string[] = []
  const error = ({ err }: { err?: unknown }, message: string) => {
    if (message.startsWith('the inbox cannot be opened yet')) logged.push(`${err}`)
  }
  const inbox = postgresInbox({ timeoutMs: 300, ...options })
  const receiver = createReceiver({ verify: unverified(), inbox, logger: { ...silent, error }, retry: { attempts: 1 } })
  onTestFinished(async () => void (await receiver.close({ timeoutMs: 1_000 })))
  const handled: MediaEvent[] = []
  receiver.onAny(async (event, { transaction }) => {
    await transaction((client) => client.query('SELECT 1'))
    handled.push(event)
  })
  receiver.expect('encoding.finished', { then: 'encoding.failed', within: '1 h' }, () => {})
  const send = () => {
    const payload = samplePayload('encoding.finished', { media_id: `m${++events}` })
    return deliver(receiver, JSON.stringify(payload), { url: '/' })
  }
  return { receiver, handled, send, logged }
}

/** Expects that the inbox does everything: it accepts, keeps, handles and replays. */
async function expectUsable(options: PostgresInboxOptions) {
  const { receiver, handled, send } = receive(options)
  await receiver.ready()
  expect((await send()).status).toBe(200)
  await vi.waitUntil(() => handled.length === 1)
  expect((await deliver(receiver, '{"type":"encoding.finished"', { url: '/' })).status).toBe(400)
  const [deadLetter] = await receiver.inbox.deadLetters.list()
  await expect(receiver.inbox.deadLetters.replay(deadLetter?.key ?? '')).rejects.toMatchObject({ code: 'malformed' })
  expect(await receiver.inbox.deadLetters.discard(deadLetter?.key ?? '')).toBe(true)
  await vi.waitUntil(async () => (await receiver.inbox.stats()).running === 0)
}

/** Expects that `ready` rejects with a clear error, and that deliveries are answered 503. */
async function expectUnusable(options: PostgresInboxOptions, why: RegExp) {
  const { receiver, send, logged } = receive(options)
  await expect(receiver.ready()).rejects.toMatchObject({ code: 'unavailable', message: expect.stringMatching(why) })
  expect(await send()).toMatchObject({ status: 503 })
  expect(logged).toEqual([expect.stringMatching(why)])
  await receiver.close()
}

describe.skipIf(!findPostgres())('the tables of postgresInbox', () => {
  let server: PostgresServer
  beforeAll(async () => {
    server = await PostgresServer.start()
  })
  afterAll(() => server?.remove())

  let names = 0
  const freshName = () => `inbox_${++names}`
  const createUser = async (name: string) => {
    await server.query(`CREATE ROLE ${name} LOGIN`)
    return server.url.replace('postgres@', `${name}@`)
  }

  describe('that another tool has dropped', () => {
    const why = /tables of the inbox were dropped from the schema .*prisma db push/

    /** Makes the tables in a schema of the application, and drops them as a tool does that does not know them. */
    async function withDropped(names: readonly string[]) {
      const connection = await server.createDatabase(freshName())
      const options = { connection, schema: 'public', timeoutMs: 2_000 }
      const opened = receive(options)
      await opened.receiver.ready()
      expect((await opened.send()).status).toBe(200)
      await vi.waitUntil(() => opened.handled.length === 1)
      const admin = new Pool({ connectionString: connection })
      onTestFinished(() => admin.end())
      const { rows } = await admin.query("SELECT tablename FROM pg_tables WHERE schemaname = 'public'")
      const all = rows.map(({ tablename }) => tablename as string)
      await admin.query(`DROP TABLE ${(names.length > 0 ? names : all).join(', ')}`)
      return { options, admin, ...opened }
    }

    test.each([[[]], [['event']], [['version']]])('are not made again, empty: %j', async (names) => {
      const { options, admin, receiver } = await withDropped(names)
      await receiver.close({ timeoutMs: 100 })
      await expectUnusable(options, why)
      await expect(openInboxDatabase({ connection: options.connection, schema: 'public' })).rejects.toThrow(why)
      await admin.query('DROP SCHEMA public CASCADE; CREATE SCHEMA public')
      await expectUsable(options)
    })

    test.each([[[]], [['event']]])(
      'are an error that says so to the receiver that has them open: %j',
      async (names) => {
        const { send, receiver } = await withDropped(names)
        expect((await send()).status).toBe(503)
        await expect(receiver.accept({ type: 'encoding.finished', mediaId: 'm' })).rejects.toThrow(why)
      },
    )

    test.each([
      ['quotes', `it's "the inbox"`],
      ['SQL', `a"; DROP TABLE b; --`],
      ['a parameter', '$1 $& %s \\'],
      ['capitals and other letters', 'Ünïcode 收件箱'],
      ['63 bytes', `${'ü'.repeat(31)}x`],
      ['a keyword', 'select'],
    ])('in a schema whose name has %s', async (_, schema) => {
      await expectUsable({ connection: server.url, schema })
      expect(await server.query('SELECT FROM pg_namespace WHERE nspname = $1', [schema])).toHaveLength(1)
      const database = await openInboxDatabase({ connection: server.url, schema })
      expect(await database.stats()).toEqual({ waiting: 0, running: 0, retrying: 0, deadLetters: 0, expected: 1 })
      await database.close()
    })

    test('in an empty schema that the user owns, without the right to create one', async () => {
      const schema = freshName()
      const connection = await createUser('owner_of_one')
      await server.query(`CREATE SCHEMA ${schema} AUTHORIZATION owner_of_one`)
      await expectUsable({ connection, schema })
    })

    test('once a user has the right to', async () => {
      const schema = freshName()
      const connection = await createUser('waits_for_rights')
      const { receiver, send } = receive({ connection, schema })
      await expect(receiver.ready()).rejects.toMatchObject({
        code: 'unavailable',
        message: expect.stringMatching(/may not make the schema .*: grant CREATE on the database, or run the SQL/),
      })
      expect((await send()).status).toBe(503)
      await server.query('GRANT CREATE ON DATABASE postgres TO waits_for_rights')
      await vi.waitFor(async () => expect((await send()).status).toBe(200))
      await receiver.ready()
    })

    test('with the SQL of migrationSql by another user, who grants the rights', async () => {
      const schema = freshName()
      const connection = await createUser('application')
      await server.query(`BEGIN; ${migrationSql(schema)}; COMMIT`)
      await expectUnusable({ connection, schema }, /may not read and write the tables .*: grant it USAGE on the schema/)
      await server.query(`GRANT USAGE ON SCHEMA ${schema} TO application`)
      await expectUnusable({ connection, schema }, /may not read and write the tables/)
      await server.query(`GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA ${schema} TO application`)
      await expectUnusable({ connection, schema }, /all rights on its tables and sequences/)
      await server.query(`GRANT USAGE ON ALL SEQUENCES IN SCHEMA ${schema} TO application`)
      await expectUsable({ connection, schema })
      expect(await migrate(connection, { schema })).toBe(false)
    })

    test.each([[''], ['a\0b'], ['x'.repeat(64)], ['ü'.repeat(32)], [7]])('never in a schema named %j', (schema) => {
      const name = schema as string
      const invalid = expect.objectContaining({
        code: 'invalid_option',
        message: expect.stringMatching(/1 to 63 bytes/),
      })
      expect(() => postgresInbox({ connection: server.url, schema: name })).toThrow(invalid)
      expect(() => migrationSql(name)).toThrow(invalid)
    })
  })

  describe('cannot be used, with a clear error, if', () => {
    test('a newer version made them', async () => {
      const schema = freshName()
      await migrate(server.url, { schema })
      await server.query(`UPDATE ${schema}.version SET version = version + 1`)
      await expectUnusable(
        { connection: server.url, schema },
        /a newer version of media-webhooks made the schema inbox_/,
      )
    })

    test.each([
      ['has other columns', 'CREATE TABLE s.version (number text)'],
      ['has a text', "CREATE TABLE s.version (version text); INSERT INTO s.version VALUES ('v2')"],
      ['is empty', 'CREATE TABLE s.version (version integer)'],
    ])('a table "version" of another program %s', async (_, sql) => {
      const schema = freshName()
      await server.query(`CREATE SCHEMA ${schema}; ${sql.replaceAll('s.', `${schema}.`)}`)
      await expectUnusable(
        { connection: server.url, schema },
        /has a table "version" of another program: name a schema/,
      )
    })

    test('another table has one of their names', async () => {
      const schema = freshName()
      await server.query(`CREATE SCHEMA ${schema}; CREATE TABLE ${schema}.event (id integer)`)
      await expectUnusable({ connection: server.url, schema }, /cannot be made: column "media" does not exist/)
      expect(await server.query('SELECT FROM pg_tables WHERE schemaname = $1', [schema])).toHaveLength(1)
    })

    test('Postgres reserves the name of the schema', () =>
      expectUnusable({ connection: server.url, schema: 'pg_inbox' }, /cannot be made: unacceptable schema name/))

    test('the encoding is not UTF8', async () => {
      await server.query(`CREATE DATABASE latin ENCODING 'LATIN1' LOCALE 'C' TEMPLATE template0`)
      const connection = server.url.replace(/postgres$/, 'latin')
      await expectUnusable({ connection }, /its encoding is LATIN1: create one with ENCODING 'UTF8'/)
    })

    test('transactions are read-only', async () => {
      const connection = await createUser('read_only')
      await server.query('ALTER ROLE read_only SET default_transaction_read_only = on')
      await expectUnusable({ connection }, /its transactions are read-only \(default_transaction_read_only\)/)
    })

    test('the server is a replica, which can be looked into, until it is promoted', async () => {
      const schema = freshName()
      await migrate(server.url, { schema })
      const replica = await startReplica(server)
      onTestFinished(() => replica.remove())
      const database = await openInboxDatabase({ connection: replica.url, schema })
      expect(await database.stats()).toMatchObject({ waiting: 0, deadLetters: 0 })
      await expect(database.deadLetters.discard('m1')).rejects.toMatchObject({ code: 'unavailable' })
      await database.close()
      await expectUnusable({ connection: replica.url }, /it is a read-only replica: give the address of the primary/)
      const { receiver, send } = receive({ connection: replica.url })
      await expect(receiver.ready()).rejects.toMatchObject({ code: 'unavailable' })
      await replica.query('SELECT pg_promote()')
      await vi.waitFor(async () => expect((await send()).status).toBe(200))
    })
  })

  test('are opened as soon as a server that could not be reached is there', async () => {
    const late = await PostgresServer.start()
    onTestFinished(() => late.remove())
    await late.stop('SIGINT')
    const { receiver, send, handled, logged } = receive({ connection: late.url })
    await expect(receiver.ready()).rejects.toMatchObject({ code: 'unavailable' })
    expect(await send()).toMatchObject({ status: 503 })
    await expect(receiver.inbox.stats()).rejects.toMatchObject({ code: 'unavailable' })
    await late.restart()
    await vi.waitFor(async () => expect((await send()).status).toBe(200))
    await receiver.ready()
    await vi.waitUntil(() => handled.length >= 1)
    expect(logged).toHaveLength(1)
  })
})
