import { randomUUID } from 'node:crypto'
import { Client } from 'pg'
import { afterAll, beforeAll, describe, expect, onTestFinished, test, vi } from 'vitest'
import { hashMedia } from '../../../src/inbox/postgres/keys.ts'
import { migrate, migrationSql, openInboxDatabase, postgresInbox } from '../../../src/inbox/postgres.ts'
import { createReceiver, unverified } from '../../../src/index.ts'
import { eventOf } from '../../support/inbox.ts'
import { findPostgres } from '../../support/postgres/find-postgres.ts'
import { PostgresServer } from '../../support/postgres/postgres-server.ts'
import { silent } from '../../support/silent.ts'
import { version1, version1Rows } from './version-1.ts'

/** Removes what version 6 has added. */
const withoutVersion6 = (schema: string) => `
  DROP TABLE ${schema}.pause;
  ALTER TABLE ${schema}.event DROP COLUMN releases;
  ALTER TABLE ${schema}.claim DROP COLUMN releases;
  ALTER TABLE ${schema}.owner DROP COLUMN version, DROP COLUMN process, DROP COLUMN running`

/** Removes what versions 5 and 6 have added: before, the events had another index by media item. */
const withEarlierIndex = (schema: string) => `
  ${withoutVersion6(schema)};
  DROP INDEX ${schema}.event_of_media;
  CREATE INDEX event_media ON ${schema}.event (media, id)`

describe.skipIf(!findPostgres())('tables of version 1', () => {
  let server: PostgresServer
  beforeAll(async () => {
    server = await PostgresServer.start()
  })
  afterAll(() => server?.remove())

  let schemas = 0

  /** Makes tables of version 1, and functions that write to them as version 1 does. */
  async function earlier() {
    const schema = `inbox_${++schemas}`
    await server.query(version1(schema))
    return { schema, rows: version1Rows((sql, values) => server.query(sql, values), schema) }
  }

  /** Starts a receiver that handles events, and is closed with the test. */
  async function serve(schema: string, connection = server.url) {
    const handled: [key: string, attempt: number][] = []
    const inbox = postgresInbox({ connection, schema })
    const receiver = createReceiver({ verify: unverified(), inbox, logger: silent })
    receiver.onAny(({ key }, { attempt }) => void handled.push([key, attempt]))
    onTestFinished(async () => void (await receiver.close({ timeoutMs: 1_000 })))
    await receiver.ready()
    return { receiver, handled }
  }

  const versionOf = async (schema: string) => (await server.query(`SELECT * FROM ${schema}.version`))[0]

  test('are updated with all that they hold', async () => {
    const { schema, rows } = await earlier()
    await rows.handled('handled')
    await rows.event('waiting', 'a')
    await rows.event('due', 'b', { attempts: 2, dueInMs: -1 })
    await rows.event('retrying', 'c', { attempts: 3, dueInMs: 60_000 })
    await rows.deadLetter('dead', 'c')
    const { receiver, handled } = await serve(schema)
    const { inbox } = receiver
    await vi.waitFor(() => expect(handled).toHaveLength(2))
    expect(handled.toSorted()).toEqual([
      ['due', 3],
      ['waiting', 1],
    ])
    expect(await inbox.accept(eventOf('handled'))).toBe('duplicate')
    expect(await inbox.events?.get('retrying')).toMatchObject({ state: 'retrying', attempts: 3, failedAttempts: [] })
    expect(await inbox.events?.get('dead')).toMatchObject({
      state: 'dead',
      failedAttempts: [{ number: 5, failures: [{ handler: 'handle', message: 'Error: no' }] }],
    })
    // The media of old dead letters is written soon after the start.
    await vi.waitFor(async () =>
      expect((await inbox.history?.('c'))?.map(({ key }) => key)).toEqual(['retrying', 'dead']),
    )
    expect(await inbox.deadLetters.replay('dead')).toBe(true)
    expect(await inbox.events?.retryNow('retrying')).toBe(true)
    await vi.waitFor(() => expect(handled).toHaveLength(4))
    await vi.waitFor(async () =>
      expect((await inbox.events?.list({ state: 'handled', order: 'oldest' }))?.events.map(({ key }) => key)).toEqual([
        'waiting',
        'due',
        'retrying',
        'dead',
      ]),
    )
  })

  test('are updated once, however many processes start at a time', async () => {
    const { schema, rows } = await earlier()
    await rows.event('one', 'm')
    const changed = await Promise.all(Array.from({ length: 6 }, () => migrate(server.url, { schema })))
    expect(changed.filter((isChanged) => isChanged)).toEqual([true])
    const receivers = await Promise.all([serve(schema), serve(schema)])
    await vi.waitFor(() => expect(receivers.flatMap(({ handled }) => handled)).toEqual([['one', 1]]))
  })

  test('stay usable by processes of version 1, which only check the number', async () => {
    const { schema, rows } = await earlier()
    const { receiver, handled } = await serve(schema)
    expect(await versionOf(schema)).toEqual({ version: 1, tables: 6 })
    await rows.event('one', 'm')
    await rows.deadLetter('dead', 'm')
    // The notification of a process that has marked an unreadable delivery. The running process then checks its tables.
    await server.query(`SELECT pg_notify('${schema}', 'replay')`)
    await vi.waitFor(() => expect(handled).toEqual([['one', 1]]))
    await vi.waitFor(async () =>
      expect((await receiver.inbox.history?.('m'))?.map(({ key, state }) => [key, state])).toEqual([
        ['one', 'handled'],
        ['dead', 'dead'],
      ]),
    )
    // A process of version 1 removes an event without a record of it.
    await rows.event('two', 'm', { dueInMs: 60_000 })
    await server.query(`DELETE FROM ${schema}.event`)
    expect(await receiver.inbox.events?.get('two')).toBe(undefined)
    expect(await receiver.inbox.accept(eventOf('two'))).toBe('duplicate')
  })

  test('are updated by the SQL of migrationSql, which changes nothing the second time', async () => {
    const { schema, rows } = await earlier()
    await rows.event('one', 'm')
    for (let time = 0; time < 2; time++) {
      await server.query(`BEGIN; ${migrationSql(schema)}; COMMIT`)
      expect(await versionOf(schema)).toEqual({ version: 1, tables: 6 })
    }
    expect(await migrate(server.url, { schema })).toBe(false)
    const { handled } = await serve(schema)
    await vi.waitFor(() => expect(handled).toEqual([['one', 1]]))
  })

  test('pass their rights on to the new ones', async () => {
    const { schema } = await earlier()
    await server.query(`
      CREATE ROLE "the owner"; CREATE ROLE application LOGIN; CREATE ROLE "may read" LOGIN;
      GRANT USAGE ON SCHEMA ${schema} TO application, "may read";
      GRANT USAGE, CREATE ON SCHEMA ${schema} TO "the owner";
      ALTER TABLE ${schema}.event OWNER TO "the owner";
      GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA ${schema} TO application;
      GRANT USAGE ON ALL SEQUENCES IN SCHEMA ${schema} TO application;
      GRANT SELECT ON ALL TABLES IN SCHEMA ${schema} TO "may read"`)
    const application = server.url.replace('postgres@', 'application@')
    await expect(migrate(application, { schema })).rejects.toMatchObject({
      code: 'unavailable',
      message: expect.stringMatching(/this user may not update the tables .*: run the SQL that "media-webhooks inbox/),
    })
    expect(await migrate(server.url, { schema })).toBe(true)
    const { receiver, handled } = await serve(schema, application)
    await receiver.inbox.accept(eventOf('one', 'm'))
    await vi.waitFor(() => expect(handled).toEqual([['one', 1]]))
    await vi.waitFor(async () => expect((await receiver.inbox.stats()).running).toBe(0))
    await receiver.close()

    const database = await openInboxDatabase({ connection: server.url.replace('postgres@', 'may%20read@'), schema })
    onTestFinished(() => database.close())
    expect(await database.events.get('one')).toMatchObject({ state: 'handled' })
    expect((await database.events.list()).events).toHaveLength(1)
    expect(await database.history('m')).toHaveLength(1)
    expect(await database.stats()).toMatchObject({ waiting: 0 })
    expect(await database.activity(new Date(0))).toHaveLength(1)
    await expect(database.events.retryNow('one')).rejects.toMatchObject({ code: 'unavailable' })
    const owners = await server.query<{ owner: string }>(
      'SELECT tableowner AS owner FROM pg_tables WHERE schemaname = $1 AND tablename IN ($2, $3)',
      [schema, 'handled', 'activity'],
    )
    expect(owners.map(({ owner }) => owner)).toEqual(['the owner', 'the owner'])
  })

  test('of version 2 are updated while its processes use them, whose events owe no handler that is known', async () => {
    const { schema } = await earlier()
    await migrate(server.url, { schema })
    await server.query(`
      ALTER TABLE ${schema}.event DROP COLUMN owed, DROP COLUMN since;
      ALTER TABLE ${schema}.owner DROP COLUMN handlers;
      ${withEarlierIndex(schema)};
      DROP TABLE ${schema}.claim, ${schema}.expectation, ${schema}.expectation_end;
      UPDATE ${schema}.version SET tables = 2;
      INSERT INTO ${schema}.owner (id, expires_at, suspects) VALUES (gen_random_uuid(), now() + interval '1 h', 1);
      INSERT INTO ${schema}.event (id, media, event, received_at)
      VALUES (nextval('${schema}.event_id'), 1, '${JSON.stringify(eventOf('one').event)}', now())`)
    const { receiver, handled } = await serve(schema)
    await vi.waitFor(() => expect(handled).toEqual([['one', 1]]))
    await vi.waitFor(async () =>
      expect(await receiver.inbox.stats()).toMatchObject({ waiting: 0, running: 0, retrying: 0 }),
    )
    expect(await versionOf(schema)).toEqual({ version: 1, tables: 6 })
  })

  test('of version 5 are updated while its processes use them, whose names are not known', async () => {
    const { schema } = await earlier()
    await migrate(server.url, { schema })
    await server.query(`
      ${withoutVersion6(schema)};
      UPDATE ${schema}.version SET tables = 5;
      INSERT INTO ${schema}.owner (id, expires_at, suspects, handlers)
      VALUES ('00000000-0000-4000-8000-000000000000', now() + interval '1 h', 1, '[]');
      INSERT INTO ${schema}.event (id, media, event, received_at, owner)
      VALUES (1, 1, '${JSON.stringify(eventOf('one').event)}', now(), '00000000-0000-4000-8000-000000000000')`)
    const { receiver } = await serve(schema)
    expect(await versionOf(schema)).toEqual({ version: 1, tables: 6 })
    const [record] = (await receiver.inbox.events?.list({ state: 'running' }))?.events ?? []
    expect(record).toMatchObject({ key: 'one', state: 'running' })
    expect(record).not.toHaveProperty('process')
  })

  test('of version 3 are updated while its processes use them', async () => {
    const { schema } = await earlier()
    await migrate(server.url, { schema })
    await server.query(`
      ${withEarlierIndex(schema)};
      DROP TABLE ${schema}.expectation, ${schema}.expectation_end;
      UPDATE ${schema}.version SET tables = 3;
      INSERT INTO ${schema}.owner (id, expires_at, suspects, handlers)
      VALUES (gen_random_uuid(), now() + interval '1 h', 1, '[{"name": "other"}]');
      INSERT INTO ${schema}.event (id, media, event, received_at, owed)
      VALUES (nextval('${schema}.event_id'), 1, '${JSON.stringify(eventOf('one').event)}', now(), '[]')`)
    const { handled } = await serve(schema)
    await vi.waitFor(() => expect(handled).toEqual([['one', 1]]))
    expect(await versionOf(schema)).toEqual({ version: 1, tables: 6 })
  })

  test('of version 5 are updated while its processes use them, and see what this version claims', async () => {
    const { schema } = await earlier()
    await migrate(server.url, { schema })
    const owner = randomUUID()
    const insert = (key: string, mediaId: string, by = 'NULL') =>
      server.query(`INSERT INTO ${schema}.event (id, media, event, received_at, owed, owner)
        VALUES (nextval('${schema}.event_id'), ${hashMedia(mediaId)}, '${JSON.stringify(eventOf(key, mediaId).event)}', now(), '[]', ${by}); NOTIFY ${schema}`)
    const ownerOf = async (key: string) =>
      (await server.query(`SELECT owner FROM ${schema}.event WHERE event ->> 'key' = '${key}'`))[0]
    await server.query(`
      ${withoutVersion6(schema)};
      UPDATE ${schema}.version SET tables = 5;
      INSERT INTO ${schema}.owner (id, expires_at, suspects, handlers) VALUES ('${owner}', now() + interval '1 h', 1, '[]')`)
    await insert('with version 5', 'a', `'${owner}'`)
    await server.query(
      `INSERT INTO ${schema}.claim (owner, events) SELECT owner, array_agg(id) FROM ${schema}.event GROUP BY owner`,
    )
    await insert('behind it', 'a')
    await insert('other', 'b')
    const { receiver, handled } = await serve(schema)
    const owners: unknown[] = []
    receiver.onAny(async ({ key }) => void owners.push([key, await ownerOf(key)]))
    await vi.waitFor(() => expect(owners).toEqual([['other', { owner: expect.any(String) }]]))
    await server.query(`DELETE FROM ${schema}.event WHERE owner = '${owner}'; NOTIFY ${schema}`)
    await vi.waitFor(() => expect(owners).toHaveLength(2))
    // The last process of version 5 has ended.
    await server.query(`DELETE FROM ${schema}.owner WHERE id = '${owner}'`)
    await insert('last', 'a')
    await vi.waitFor(() =>
      expect(owners.slice(1)).toEqual([
        ['behind it', { owner: expect.any(String) }],
        ['last', { owner: null }],
      ]),
    )
    expect(handled.map(([key]) => key)).toEqual(['other', 'behind it', 'last'])
  })

  test('of version 5 are updated, and can be paused from then on', async () => {
    const { schema } = await earlier()
    await migrate(server.url, { schema })
    await server.query(`
      ${withoutVersion6(schema)};
      UPDATE ${schema}.version SET tables = 5`)
    const { receiver, handled } = await serve(schema)
    expect(await versionOf(schema)).toEqual({ version: 1, tables: 6 })
    const { inbox } = receiver
    expect(await inbox.pauses?.pause()).toBe(true)
    await inbox.accept(eventOf('one'))
    expect(await inbox.pauses?.resume()).toBe(true)
    await vi.waitFor(() => expect(handled).toEqual([['one', 1]]))
  })

  test('cannot be looked into before they are updated, with an error that names the fix', async () => {
    const { schema } = await earlier()
    await expect(openInboxDatabase({ connection: server.url, schema })).rejects.toMatchObject({
      code: 'unavailable',
      message: expect.stringMatching(
        /an earlier version .* made the schema .*: start a receiver .*, or run ".* migrate"/,
      ),
    })
    expect(await versionOf(schema)).toEqual({ version: 1 })
  })

  test('are updated without holding up the statements of others, while one of them holds a lock', async () => {
    const { schema } = await earlier()
    const blocker = new Client(server.url)
    onTestFinished(() => blocker.end())
    await blocker.connect()
    await blocker.query(`BEGIN; LOCK TABLE ${schema}.event IN ROW EXCLUSIVE MODE`)
    const migrated = migrate(server.url, { schema })
    const isWaiting = () => server.query("SELECT FROM pg_stat_activity WHERE wait_event_type = 'Lock'")
    await vi.waitFor(async () => expect(await isWaiting()).toHaveLength(1))
    // It waits behind the migration, which must not wait until the lock is free.
    await server.query(`SET lock_timeout = '5s'; DELETE FROM ${schema}.event`)
    expect(await versionOf(schema)).toEqual({ version: 1 })
    await blocker.query('COMMIT')
    expect(await migrated).toBe(true)
  })
})
