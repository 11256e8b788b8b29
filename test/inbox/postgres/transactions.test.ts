import { setTimeout as sleep } from 'node:timers/promises'
import { Pool, type PoolClient } from 'pg'
import { describe, expect, onTestFinished, test, vi } from 'vitest'
import { findPostgres } from '../../postgres/find-postgres.ts'
import { accept, postgresTests } from './fixture.ts'

vi.setConfig({ testTimeout: 20_000 })

describe.skipIf(!findPostgres())('context.transaction of postgresInbox', () => {
  const postgres = postgresTests()
  const write = (client: PoolClient) => client.query('INSERT INTO public.row VALUES (1)')
  const rows = async () => (await postgres.query('SELECT 1 FROM public.row')).length

  async function withTable() {
    await postgres.query('CREATE TABLE IF NOT EXISTS public.row (n int)')
    await postgres.query('TRUNCATE public.row')
  }

  test('writes once although the answer to the commit was lost', async () => {
    await withTable()
    const { proxy, pool } = await postgres.throughProxy()
    const attempts: (number | string)[] = []
    const receiver = postgres.receiver({ pool })
    receiver.onAny(async (_, { attempt, transaction }) => {
      attempts.push(attempt)
      await transaction(async (client) => {
        await write(client)
        proxy.mute()
        void sleep(150).then(() => proxy.breakFor(50))
      }).catch((error) => {
        attempts.push('unknown')
        throw error
      })
    })
    await receiver.ready()
    await accept(receiver, 'media')
    await vi.waitFor(async () => expect(await postgres.query('SELECT 1 FROM $schema.event')).toEqual([]), 10_000)
    expect(attempts).toEqual([1, 'unknown'])
    expect(await rows()).toBe(1)
  })

  test('writes nothing when its run throws, and the next attempt writes', async () => {
    await withTable()
    const receiver = postgres.receiver()
    receiver.onAny(async (_, { attempt, transaction }) => {
      await transaction(async (client) => {
        await write(client)
        if (attempt === 1) throw new Error('no')
      })
    })
    await receiver.ready()
    await accept(receiver, 'media')
    await vi.waitFor(async () => expect(await rows()).toBe(1))
    await vi.waitFor(async () => expect(await postgres.query('SELECT 1 FROM $schema.event')).toEqual([]))
    expect(await rows()).toBe(1)
  })

  test('writes nothing once the handler has timed out, even if its statement is still running', async () => {
    await withTable()
    const receiver = postgres.receiver({}, { handlerTimeoutMs: 100, retry: { attempts: 1 } })
    const errors: unknown[] = []
    receiver.onError((error) => void errors.push(error))
    receiver.onAny((_, { transaction }) =>
      transaction(async (client) => {
        await write(client)
        await client.query('SELECT pg_sleep(0.3)')
      }),
    )
    await receiver.ready()
    await accept(receiver, 'media')
    await vi.waitFor(async () => expect((await receiver.inbox.stats()).deadLetters).toBe(1))
    expect(errors).toMatchObject([{ code: 'timeout' }])
    await sleep(400)
    expect(await rows()).toBe(0)
  })

  test('reports an error of the handler after it, and does not run the handler again', async () => {
    await withTable()
    const receiver = postgres.receiver()
    const runs = vi.fn()
    const onError = vi.fn()
    receiver.onError((_, handling) => onError(handling.willRetry))
    receiver.onAny(async (_, { transaction }) => {
      runs()
      await transaction(write)
      throw new Error('after')
    })
    await receiver.ready()
    await accept(receiver, 'media')
    await vi.waitFor(async () => expect(await postgres.query('SELECT 1 FROM $schema.event')).toEqual([]))
    expect(runs).toHaveBeenCalledTimes(1)
    expect(onError.mock.calls).toEqual([[false]])
    expect(await rows()).toBe(1)
  })

  test('fails with a clear error when its function has ended the transaction itself', async () => {
    await withTable()
    const receiver = postgres.receiver({}, { retry: { attempts: 1 } })
    const errors: unknown[] = []
    receiver.onError((error) => void errors.push(error))
    receiver.onAny(({ mediaId }, { transaction }) =>
      transaction(async (client) => {
        await client.query('BEGIN')
        await write(client)
        await client.query('COMMIT')
        if (mediaId === 'begun again') await client.query('BEGIN')
      }),
    )
    await receiver.ready()
    await accept(receiver, 'ended')
    await accept(receiver, 'begun again')
    await vi.waitFor(() => expect(errors).toHaveLength(2))
    expect(errors).toMatchObject([{ code: 'invalid_transaction' }, { code: 'invalid_transaction' }])
  })

  test('gives its slot free when Postgres hangs during the commit', async () => {
    await withTable()
    const receiver = postgres.receiver({ concurrency: 1 }, { handlerTimeoutMs: 200 })
    const attempts: number[] = []
    receiver.onAny(async (_, { attempt, transaction }) => {
      attempts.push(attempt)
      await transaction(async (client) => {
        await write(client)
        if (attempt === 1) postgres.server.pause()
      })
    })
    await receiver.ready()
    await accept(receiver, 'media')
    await sleep(1_000)
    postgres.server.resume()
    await vi.waitFor(async () => expect(await postgres.query('SELECT 1 FROM $schema.event')).toEqual([]), 15_000)
    expect(await rows()).toBe(1)
  })

  test("leaves the pool's clients as they were, also after failures", async () => {
    await withTable()
    const pool = new Pool({ connectionString: postgres.server.url, max: 2 })
    onTestFinished(() => pool.end())
    const receiver = postgres.receiver({ pool }, { retry: { attempts: 1 } })
    const done = vi.fn()
    receiver.onAny(async ({ mediaId }, { transaction }) => {
      try {
        await transaction(async (client) => {
          if (mediaId.endsWith('1')) await client.query('SELECT nonsense')
          if (mediaId.endsWith('2')) throw new Error('no')
          await write(client)
        })
      } finally {
        done()
      }
    })
    await receiver.ready()
    await Promise.all(
      Array.from({ length: 20 }, (_, index) => accept(receiver, `media ${index % 4} ${index % 3}${index}`)),
    )
    await Promise.all(Array.from({ length: 9 }, (_, index) => accept(receiver, `failing ${index} ${1 + (index % 2)}`)))
    await vi.waitFor(() => expect(done).toHaveBeenCalledTimes(29), 5_000)
    await receiver.close()
    expect(pool.totalCount).toBeLessThanOrEqual(2)
    expect(pool.idleCount).toBe(pool.totalCount)
    const clients = await Promise.all([pool.connect(), pool.connect()])
    const listeners = clients.map((client) => client.listenerCount('error'))
    const timeouts = await Promise.all(
      clients.map((client) => client.query('SHOW idle_in_transaction_session_timeout')),
    )
    for (const client of clients) client.release()
    expect(listeners).toEqual([0, 0])
    expect(timeouts.map(({ rows: [row] }) => row)).toEqual(
      clients.map(() => ({ idle_in_transaction_session_timeout: '0' })),
    )
  })
})
