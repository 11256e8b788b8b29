import { describe, expect, onTestFinished, test, vi } from 'vitest'
import { Listener } from '../../../src/inbox/postgres/notifications.ts'
import { findPostgres } from '../../support/postgres/find-postgres.ts'
import { postgresTests } from './postgres-tests.ts'

describe.skipIf(!findPostgres())('Listener', () => {
  const postgres = postgresTests()

  async function listening(connectionString: string) {
    await postgres.receiver({ handles: false }).ready()
    const database = postgres.database(connectionString)
    const heard: string[] = []
    const listener = new Listener(database, (payload) => void heard.push(payload))
    onTestFinished(() => listener.stop())
    return { listener, heard }
  }

  test('reports what it hears, and when it may have missed something: before it listened, and while it was cut off', async () => {
    const { listener, heard } = await listening(postgres.server.url)
    await listener.start()
    expect(heard).toEqual(['any'])
    await postgres.query(`NOTIFY "${postgres.schema}", 'one'`)
    await vi.waitFor(() => expect(heard).toEqual(['any', 'one']))
    await postgres.query("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE query LIKE 'LISTEN%'")
    await vi.waitFor(() => expect(heard).toEqual(['any', 'one', 'any']))
    await postgres.query(`NOTIFY "${postgres.schema}", 'two'`)
    await vi.waitFor(() => expect(heard).toEqual(['any', 'one', 'any', 'two']))
  })

  test('finds out that nothing comes through its connection any more, and makes another one', async () => {
    const { proxy, pool } = await postgres.throughProxy()
    const { listener, heard } = await listening(pool.options.connectionString as string)
    await listener.start()
    proxy.silence()
    await postgres.query(`NOTIFY "${postgres.schema}", 'lost'`)
    await vi.waitFor(() => expect(heard).toEqual(['any', 'any']), 60_000)
    await postgres.query(`NOTIFY "${postgres.schema}", 'heard'`)
    await vi.waitFor(() => expect(heard).toEqual(['any', 'any', 'heard']), 60_000)
  })
})
