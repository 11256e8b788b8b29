import { Client } from 'pg'
import { describe, expect, onTestFinished, test, vi } from 'vitest'
import { unreachable } from '../../../src/inbox/postgres/database.ts'
import { findPooler } from '../../../src/inbox/postgres/pooler.ts'
import { findPostgres } from '../../support/postgres/find-postgres.ts'
import { findPgBouncer, PgBouncer } from '../../support/postgres/pgbouncer.ts'
import { accept, postgresTests } from './postgres-tests.ts'

describe.skipIf(!findPostgres() || !findPgBouncer())('behind PgBouncer', () => {
  const postgres = postgresTests()

  async function bouncer(
    ...options: Parameters<typeof PgBouncer.start> extends [number, ...infer Rest] ? Rest : never
  ) {
    const started = await PgBouncer.start(postgres.server.port, ...options)
    onTestFinished(() => started.stop())
    return started
  }

  async function connect(url: string): Promise<Client> {
    const client = new Client({ connectionString: url })
    await client.connect()
    onTestFinished(() => client.end())
    return client
  }

  const pooler = async (url: string) => findPooler(await connect(url), await connect(url))

  test('a pooler is told from a direct connection, and its mode from the sessions that it gives out', async () => {
    expect(await pooler(postgres.server.url)).toBe('none')
    expect(await pooler((await bouncer('session')).url)).toBe('session')
    expect(await pooler((await bouncer('transaction')).url)).toBe('transaction')
    const inTurn = await bouncer('transaction', { server_round_robin: '1' })
    const others = [await connect(inTurn.url), await connect(inTurn.url), await connect(inTurn.url)]
    await Promise.all(others.map((client) => client.query('SELECT pg_sleep(0.05)')))
    expect(await pooler(inTurn.url)).toBe('transaction')
  })

  test('in transaction mode, ready() names the option, and other applications keep their settings', async () => {
    const { url } = await bouncer('transaction', { default_pool_size: '3' })
    const receiver = postgres.receiver({ connection: url })
    receiver.on('encoding.finished', () => {})
    await expect(receiver.ready()).rejects.toThrow(/listen: false/)
    const others = [await connect(url), await connect(url), await connect(url)]
    const read = "SELECT current_setting('statement_timeout') AS limit, pg_sleep(0.05)"
    const found = await Promise.all(others.map(async (client) => (await client.query(read)).rows[0].limit))
    expect(found).toEqual(['0', '0', '0'])
  })

  test('in transaction mode, an inbox that does not listen handles everything and leaves nothing behind', async () => {
    const { url } = await bouncer('transaction', { default_pool_size: '4' })
    const receiver = postgres.receiver({ connection: url, listen: false })
    const handled: string[] = []
    receiver.on('encoding.finished', async (event, { transaction }) => {
      await transaction((client) => client.query('SELECT 1'))
      handled.push(event.mediaId)
    })
    await receiver.ready()
    const ids = Array.from({ length: 50 }, (_, index) => `media-${index}`)
    expect(new Set(await Promise.all(ids.map((id) => accept(receiver, id))))).toEqual(new Set(['accepted']))
    await vi.waitFor(() => expect(handled.length).toBe(50))
    const others = await Promise.all([1, 2, 3, 4].map(() => connect(url)))
    const read = `SELECT pg_sleep(0.05), current_setting('statement_timeout') AS limit,
      (SELECT count(*)::int FROM pg_prepared_statements) AS prepared,
      (SELECT count(*)::int FROM pg_listening_channels()) AS channels`
    for (const { rows } of await Promise.all(others.map((client) => client.query(read))))
      expect(rows[0]).toMatchObject({ limit: '0', prepared: 0, channels: 0 })
  })

  test('in session mode, an inbox listens', async () => {
    const { url } = await bouncer('session')
    const receiver = postgres.receiver({ connection: url })
    const handled: string[] = []
    receiver.on('encoding.finished', (event) => void handled.push(event.mediaId))
    await receiver.ready()
    expect(await accept(receiver, 'one')).toBe('accepted')
    await vi.waitFor(() => expect(handled).toEqual(['one']))
  })
})

test('the errors of a statement that another session has prepared name the option', () => {
  for (const code of ['26000', '42P05'])
    expect(unreachable(Object.assign(new Error('prepared statement'), { code })).message).toContain('listen: false')
  expect(unreachable(Object.assign(new Error('no table'), { code: '42P01' })).message).not.toContain('listen: false')
})
