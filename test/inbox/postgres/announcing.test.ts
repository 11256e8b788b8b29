import { beforeEach, describe, expect, onTestFinished, test, vi } from 'vitest'
import type { Database } from '../../../src/inbox/postgres/database.ts'
import { Announcements } from '../../../src/inbox/postgres/notifications.ts'
import { findPostgres } from '../../support/postgres/find-postgres.ts'
import { accept, postgresTests } from './postgres-tests.ts'

describe('a notification of new events', () => {
  const query = vi.fn<Database['query']>()
  const announcements = () =>
    new Announcements({ channel: 'events', accepting: { query } } as unknown as Database, 'sender')

  beforeEach(() => {
    query.mockReset().mockResolvedValue([])
    vi.useFakeTimers()
    onTestFinished(() => void vi.useRealTimers())
  })

  test('is sent immediately for the first event, and once for all that follow within 10 ms', async () => {
    const { announce } = bound(announcements())
    announce()
    expect(query.mock.calls).toEqual([['SELECT pg_notify($1, $2)', ['events', 'sender'], 'notify']])
    for (let index = 0; index < 10; index++) announce()
    await vi.advanceTimersByTimeAsync(9)
    expect(query).toHaveBeenCalledTimes(1)
    await vi.advanceTimersByTimeAsync(200)
    expect(query).toHaveBeenCalledTimes(2)
    announce()
    expect(query).toHaveBeenCalledTimes(3)
  })

  test('is sent again a second after Postgres could not take it', async () => {
    query.mockRejectedValueOnce(new Error('connect ECONNREFUSED'))
    const { announce } = bound(announcements())
    announce()
    await vi.advanceTimersByTimeAsync(999)
    expect(query).toHaveBeenCalledTimes(1)
    await vi.advanceTimersByTimeAsync(10_000)
    expect(query).toHaveBeenCalledTimes(2)
  })

  test('that is due is sent when the inbox closes, and none afterwards', async () => {
    const { announce, stop } = bound(announcements())
    announce()
    announce()
    await stop()
    expect(query).toHaveBeenCalledTimes(2)
    announce()
    await vi.advanceTimersByTimeAsync(200)
    expect(query).toHaveBeenCalledTimes(2)
  })
})

const bound = (announcements: Announcements) => ({
  announce: () => announcements.announce(),
  stop: () => announcements.stop(),
})

describe.skipIf(!findPostgres())('new events', () => {
  const postgres = postgresTests({ shared_preload_libraries: 'pg_stat_statements' })

  test('are notified of outside of the commits that store them, which would wait for one another', async () => {
    await postgres.query('CREATE EXTENSION IF NOT EXISTS pg_stat_statements')
    const accepting = postgres.receiver({ handles: false }).onAny(() => {})
    await accepting.ready()
    const handled: string[] = []
    const handling = postgres.receiver().onAny(({ mediaId }) => void handled.push(mediaId))
    await handling.ready()
    await postgres.query('SELECT pg_stat_statements_reset()')
    await accept(accepting, 'one')
    await vi.waitFor(() => expect(handled).toEqual(['one']))
    const statements = await postgres.query<{ query: string }>(
      `SELECT query FROM pg_stat_statements WHERE query LIKE '%pg_notify%' AND query NOT LIKE '%pg_stat_statements%'`,
    )
    expect(statements).toEqual([{ query: 'SELECT pg_notify($1, $2)' }])
  })
})
