import { Client } from 'pg'
import { describe, expect, onTestFinished, test, vi } from 'vitest'
import { checkRoute } from '../../../src/inbox/postgres/connection.ts'
import { PostgresDatabase } from '../../../src/inbox/postgres/database.ts'
import { findPostgres } from '../../support/postgres/find-postgres.ts'
import { silent } from '../../support/silent.ts'
import { accept, postgresTests } from './postgres-tests.ts'

describe.skipIf(!findPostgres())('notifications', () => {
  const postgres = postgresTests({ shared_preload_libraries: 'pg_stat_statements' })

  /** Makes a database over tables that are there. */
  async function database(connection = postgres.server.url) {
    const { schema } = postgres
    await postgres.receiver({ handles: false }).ready()
    const limits = { schema, concurrency: 1, leaseMs: 30_000, ttlMs: 60_000, timeoutMs: 2_000, handles: true }
    const opened = new PostgresDatabase(
      { logger: silent },
      { ...checkRoute('test', { connection }), ...limits, listen: true },
    )
    onTestFinished(() => opened.close().catch(() => {}))
    return opened
  }

  async function listening(connection?: string) {
    const heard: string[] = []
    const opened = await database(connection)
    opened.listen({ heard: (signal) => void heard.push(signal), flush() {}, lost() {} })
    await vi.waitFor(() => expect(heard).toEqual(['any']))
    return { opened, heard }
  }

  const say = (signal: string) => postgres.query(`NOTIFY ${postgres.schema}, '${signal}'`)

  test('are heard, and what may have been missed is told: before it listened, and while it was cut off', async () => {
    const { opened, heard } = await listening()
    await say('due')
    await vi.waitFor(() => expect(heard).toEqual(['any', 'due']))
    await postgres.query("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE query ~ '^SELECT max'")
    await vi.waitFor(() => expect(opened.isListening).toBe(false))
    await vi.waitFor(() => expect(heard).toEqual(['any', 'due', 'any', 'any']))
    await say('pause')
    await vi.waitFor(() => expect(heard).toEqual(['any', 'due', 'any', 'any', 'pause']))
  })

  test('are heard again after nothing came through their connection any more', async () => {
    const { proxy, pool } = await postgres.throughProxy()
    const { heard } = await listening(pool.options.connectionString)
    proxy.silence()
    await say('due')
    await vi.waitFor(() => expect(heard).toEqual(['any', 'any', 'any']), 60_000)
    await say('due')
    await vi.waitFor(() => expect(heard).toEqual(['any', 'any', 'any', 'due']), 60_000)
  })

  test('of new events are sent at once, then once for all that follow within 10 ms, the last one before it closes', async () => {
    const client = new Client(postgres.server.url)
    await client.connect()
    onTestFinished(() => client.end())
    const heard = vi.fn()
    client.on('notification', heard)
    const opened = await database()
    await client.query(`LISTEN ${postgres.schema}`)
    for (let index = 0; index < 20; index++) opened.notify('new')
    await vi.waitFor(() => expect(heard).toHaveBeenCalledTimes(2))
    for (let index = 0; index < 20; index++) opened.notify('new')
    await opened.close()
    await client.query('SELECT 1')
    const count = heard.mock.calls.length
    expect(count).toBeGreaterThan(2)
    expect(count).toBeLessThanOrEqual(4)
    opened.notify('new')
    await client.query('SELECT pg_sleep(0.1)')
    expect(heard).toHaveBeenCalledTimes(count)
  })

  test('of new events are sent outside of the commits that store them, which would wait for one another', async () => {
    await postgres.query('CREATE EXTENSION IF NOT EXISTS pg_stat_statements')
    const accepting = postgres.receiver({ handles: false }).onAny(() => {})
    await accepting.ready()
    const handled: string[] = []
    await postgres
      .receiver()
      .onAny(({ mediaId }) => void handled.push(mediaId))
      .ready()
    await postgres.query('SELECT pg_stat_statements_reset()')
    await accept(accepting, 'one')
    await vi.waitFor(() => expect(handled).toEqual(['one']))
    const notifying = "query LIKE '%pg_notify%' AND query NOT LIKE '%pg_stat_statements%'"
    expect(await postgres.query(`SELECT query FROM pg_stat_statements WHERE ${notifying}`)).toEqual([
      { query: 'SELECT pg_notify($1, $2)' },
    ])
  })
})
