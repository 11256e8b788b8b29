import { once } from 'node:events'
import { readFile, writeFile } from 'node:fs/promises'
import { type AddressInfo, createServer } from 'node:net'
import pg from 'pg'
import { afterAll, beforeAll, describe, expect, onTestFinished, test, vi } from 'vitest'
import { migrationSql, openInboxDatabase, postgresInbox } from '../../src/inbox/postgres.ts'
import type { Handler } from '../../src/index.ts'
import { findPostgres } from '../support/postgres/find-postgres.ts'
import { PostgresServer } from '../support/postgres/postgres-server.ts'
import { checkTarget } from './inbox-target.suite.ts'
import { finish, start } from './program.ts'
import { expectFailure, serve } from './served-inbox.ts'

const password = 'pa/ss@w0rd of the user'

describe.skipIf(!findPostgres())('inbox of Postgres', () => {
  let server: PostgresServer
  let places = 0
  beforeAll(async () => {
    server = await PostgresServer.start()
  })
  afterAll(() => server?.remove())

  const freshPlace = async () => {
    const schema = `inbox ${++places}`
    return {
      target: server.url,
      flags: ['--schema', schema],
      schema,
      inbox: () => postgresInbox({ connection: server.url, schema }),
    }
  }
  /** Creates a user, and returns the URL with which it connects. */
  const createUser = async (name: string, rights = '') => {
    await server.query(`CREATE ROLE ${name} LOGIN PASSWORD '${password}'; ${rights}`)
    return server.url.replace('postgres@', `${name}:${encodeURIComponent(password)}@`)
  }

  checkTarget(freshPlace, true)

  test('stop ends the run of a handler, and the event is retried', async () => {
    const { receiver, fix, send, seenRetrying, inbox } = await serve(await freshPlace(), { baseMs: 3_600_000 })
    fix()
    const hold: Handler = (_, { signal }) =>
      new Promise((_, reject) => signal.addEventListener('abort', () => reject(signal.reason)))
    receiver.onAny(hold, { name: 'hold' })
    await send('encoding.finished', { media_id: 'm1' })
    // `running since` follows within 20 s.
    await vi.waitFor(async () => expect((await inbox('show', 'm1')).output).toMatch(/^process +\S+:\d+$/m))
    const { code, output } = await inbox('stop', 'm1')
    expect([code, output]).toEqual([
      0,
      expect.stringMatching(/^asked its process to stop .*\n.* show .* [0-9a-f]{8}\n$/),
    ])
    await seenRetrying('m1')
    expect((await inbox('show', 'm1')).output).toMatch(/hold: .*stopped/)
    const again = await inbox('stop', 'm1', '--json')
    expect(again).toMatchObject({ code: 1, output: '{"asked":false}\n' })
    expect(again.errors).toBe('no handler runs for m1; its state: retrying\n')
  })

  describe('migrate', () => {
    test('makes the tables once', async () => {
      const { schema, flags } = await freshPlace()
      const run = (...args: string[]) => finish(['inbox', server.url, 'migrate', ...args, ...flags])
      expect(await run()).toEqual({ code: 0, output: `created the tables in the schema ${schema}\n`, errors: '' })
      expect(await run()).toEqual({ code: 0, output: `the schema ${schema} is up to date\n`, errors: '' })
      expect((await run('--json')).output).toBe(`${JSON.stringify({ schema, changed: false })}\n`)
      expect((await finish(['inbox', server.url, 'stats', ...flags])).code).toBe(0)
    })

    test('makes them once, however many run at a time', async () => {
      const { flags } = await freshPlace()
      const runs = Array.from({ length: 8 }, () => finish(['inbox', server.url, 'migrate', '--json', ...flags]))
      const changed = (await Promise.all(runs)).map(({ output }) => JSON.parse(output).changed)
      expect(changed.filter(Boolean)).toHaveLength(1)
    })

    test('--print prints SQL that makes the tables, and needs no server', async () => {
      const place = await freshPlace()
      const { code, output, errors } = await finish(['inbox', 'postgres://', 'migrate', '--print', ...place.flags])
      expect({ code, errors }).toEqual({ code: 0, errors: '' })
      await server.query(output)
      const { makeDeadLetter, inbox } = await serve(place)
      await makeDeadLetter('m1')
      expect((await inbox('stats')).output).toMatch(/^dead letters {2}1$/m)
      expect((await inbox('migrate')).output).toMatch(/ is up to date\n$/)
    })

    test('--print names the standard schema, and prints JSON with --json', async () => {
      const { output } = await finish(['inbox', 'postgres://', 'migrate', '--print', '--json'])
      expect(JSON.parse(output)).toEqual({ sql: migrationSql() })
      expect(migrationSql()).toContain('CREATE TABLE IF NOT EXISTS "media_webhooks".event')
    })

    test('says how to get the tables if the user may not make them', async () => {
      const { flags } = await freshPlace()
      const url = await createUser('unprivileged')
      await expectFailure(
        [url, 'migrate', ...flags],
        /may not make the schema .*: grant CREATE .* migrate --print/,
        password,
      )
    })

    test.each([['./inbox.db'], ['redis://127.0.0.1']])('is not for %s', (target) =>
      expectFailure([target, 'migrate'], /migrate is for Postgres only/, 'no secret', 2),
    )
  })

  test('says that there are no tables, and makes none', async () => {
    const { flags, schema } = await freshPlace()
    await expectFailure(
      [server.url, 'stats', ...flags],
      new RegExp(`no tables of an inbox in the schema ${schema}: .* migrate`),
    )
    expect(await server.query('SELECT FROM pg_namespace WHERE nspname = $1', [schema])).toEqual([])
  })

  test('says that a newer version made the tables', async () => {
    const { flags, schema } = await freshPlace()
    await finish(['inbox', server.url, 'migrate', ...flags])
    await server.query(`UPDATE "${schema}".version SET version = 99`)
    for (const action of ['stats', 'migrate'])
      await expectFailure([server.url, action, ...flags], /a newer version of media-webhooks made the schema/)
  })

  test('lets a user who may only read look, and says which right is missing to replay', async () => {
    const place = await freshPlace()
    const { makeDeadLetter, deadLetters } = await serve(place)
    await makeDeadLetter('m1')
    const url = await createUser(
      'reader',
      `GRANT USAGE ON SCHEMA "${place.schema}" TO reader; GRANT SELECT ON ALL TABLES IN SCHEMA "${place.schema}" TO reader;
       ALTER ROLE reader SET default_transaction_read_only = on`,
    )
    const read = async (...words: string[]) => (await finish(['inbox', url, ...words, ...place.flags])).output
    expect(await read('stats')).toMatch(/^dead letters {2}1$/m)
    expect(await read('dead-letters')).toMatch(/^1 of 1 dead letter$/m)
    expect(await read('events')).toMatch(/^1 event$/m)
    expect(await read('media', 'm1')).toMatch(/^1 of 1 event is not handled yet/m)
    const program = start(['inbox', url, 'watch', ...place.flags])
    await program.line(/dead letters 1$/)
    await makeDeadLetter('m2')
    await program.line(/dead letters 2$/)
    program.interrupt()
    expect([await program.code, program.errors()]).toEqual([0, ''])
    await server.query('ALTER ROLE reader RESET default_transaction_read_only')
    const { code, errors } = await finish(['inbox', url, 'replay', 'm1', ...place.flags])
    expect(code).toBe(1)
    expect(errors).toMatch(/permission denied for .* \(grant the user that right\)\n$/)
    expect(await deadLetters()).toBe(2)
  })

  test('leaves the password out of the commands that it tells to type', async () => {
    const place = await freshPlace()
    const { makeDeadLetter } = await serve(place)
    await makeDeadLetter('m1')
    const url = await createUser('typist', 'GRANT pg_read_all_data TO typist')
    const { output } = await finish(['inbox', url, 'show', 'm1', ...place.flags])
    expect(output).toMatch(
      / {2}npx media-webhooks inbox 'postgres:\/\/…@127\.0\.0\.1:\d+\/postgres' replay --schema 'inbox \d+' [0-9a-f]{8}\n$/,
    )
    expect(output).not.toContain(encodeURIComponent(password))
  })

  test('says which rights a user lacks who may not even read', async () => {
    const place = await freshPlace()
    await serve(place)
    const url = await createUser('stranger')
    await expectFailure([url, 'stats', ...place.flags], /may not read and write the tables of the schema/, password)
  })

  describe('a server that cannot be reached', () => {
    const closed = 'postgres://app:pa-ss-w0rd-9@127.0.0.1:1/app'
    test.each([
      ['is not running', closed, /postgres:\/\/…@127\.0\.0\.1:1\/app: .*ECONNREFUSED.* \(is the server running/],
      ['has a wrong name', closed.replace('127.0.0.1', 'no-such-host.invalid'), /\(is the host name right\?\)/],
      ['has a URL that is wrong', closed.replace('w0rd', 'w/0rd'), /\(encode special characters in the password/],
    ])('%s', (_, url, why) => expectFailure([url, 'stats'], why, 'pa-ss'))

    test('does not answer', async () => {
      const silent = createServer().listen(0, '127.0.0.1')
      onTestFinished(() => void silent.close())
      await once(silent, 'listening')
      const { port } = silent.address() as AddressInfo
      const url = `postgres://app:password-7@127.0.0.1:${port}/app`
      await expectFailure([url, 'stats'], /\(can this machine reach the server\?\)/, 'password-7')
    })

    test('has no such database', async () => {
      const url = await createUser('lost')
      await expectFailure(
        [url.replace(/postgres$/, 'no-such'), 'stats'],
        /\(is the name of the database right\?\)/,
        password,
      )
    })

    test('rejects the password, which is not printed', async () => {
      const url = await createUser('guarded')
      const [{ hba_file: path }] = (await server.query('SHOW hba_file')) as [{ hba_file: string }]
      await writeFile(path, `host all guarded 127.0.0.1/32 scram-sha-256\n${await readFile(path, 'utf8')}`)
      await server.query('SELECT pg_reload_conf()')
      const { flags } = await freshPlace()
      const wrong = url.replace(encodeURIComponent(password), 'wrong-pa-ss')
      const why = /password authentication failed .* \(are the user and the password right\?\)/
      await vi.waitFor(() => expectFailure([wrong, 'stats', ...flags], why, 'wrong-pa-ss'))
      await expectFailure([url, 'stats', ...flags], /no tables of an inbox/, password)
      const none = url.replace(/:[^:@]*@/, '@')
      await expectFailure([none, 'stats', ...flags], /\(the server requires a password: put it into the URL\)/)
      vi.stubEnv('PGPASSWORD', password)
      onTestFinished(() => void vi.unstubAllEnvs())
      await expectFailure([none, 'stats', ...flags], /no tables of an inbox/, password)
    })
  })

  test('openInboxDatabase looks through a given pool, which stays open', async () => {
    const place = await freshPlace()
    const { makeDeadLetter, fix, handled } = await serve(place)
    await makeDeadLetter('m1')
    const pool = new pg.Pool({ connectionString: server.url })
    const database = await openInboxDatabase({ pool, schema: place.schema })
    expect(await database.stats()).toMatchObject({ deadLetters: 1 })
    expect(await database.deadLetters.keys()).toEqual(['m1'])
    expect(await database.deadLetters.get('m1')).toMatchObject({ key: 'm1', attempts: 2 })
    fix()
    expect(await database.deadLetters.replay('m1')).toBe(true)
    expect(await database.deadLetters.replay('m1')).toBe(false)
    await vi.waitUntil(() => handled.length === 1)
    await database.close()
    expect((await pool.query('SELECT 1 AS one')).rows).toEqual([{ one: 1 }])
    await pool.end()
  })

  test.each([
    [{}, /either a pool or a connection/],
    [{ connection: 'postgres://', schema: '' }, /schema must be a name/],
    [{ connection: 'postgres://', schema: 'ü'.repeat(32) }, /schema must be a name of 1 to 63 bytes/],
    [{ connection: 'postgres://', shema: 'a' }, /shema/],
  ])('openInboxDatabase rejects with invalid_option for %j', async (options, message) => {
    await expect(openInboxDatabase(options as object)).rejects.toMatchObject({
      code: 'invalid_option',
      message: expect.stringMatching(message),
    })
  })
})
