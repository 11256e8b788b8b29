import { describe, expect, onTestFinished, test, vi } from 'vitest'
import { findPostgres } from '../../support/postgres/find-postgres.ts'
import { signalled } from '../../support/signalled.ts'
import { silent } from '../../support/silent.ts'
import { accept, postgresTests } from './postgres-tests.ts'

describe.skipIf(!findPostgres())('the record of a handled event', () => {
  const postgres = postgresTests()

  /** Lists the statements with this text that wait for a lock, each as its session and the time when it began. */
  const blocked = async (text = '') => {
    const rows = await postgres.query<{ statement: string }>(
      `SELECT pid || ' ' || query_start AS statement FROM pg_stat_activity
        WHERE wait_event_type = 'Lock' AND query LIKE '%${text}%'`,
    )
    return rows.map(({ statement }) => statement)
  }

  /** Opens a receiver with an event whose handler waits to be finished, and what it logs. */
  async function handling(inbox: { timeoutMs?: number } = {}) {
    const logged: [string, string, object][] = []
    const log = (level: string) => (details: object, message: string) => void logged.push([level, message, details])
    const logger = { ...silent, warn: log('warn'), error: log('error') }
    const front = postgres.receiver({ handles: false }).onAny(() => {}, { name: 'handle' })
    await front.ready()
    await accept(front, 'media')
    const receiver = postgres.receiver(inbox, { logger })
    const [started, finished] = [signalled(), signalled()]
    const handler = vi.fn(async () => {
      started.resolve()
      await finished.promise
    })
    receiver.onAny(handler, { name: 'handle' })
    await started.promise
    return { receiver, handler, logged, finish: () => finished.resolve() }
  }

  test('is written once Postgres can, without a new attempt or a word, when its row is locked for long', async () => {
    const { handler, logged, finish } = await handling({ timeoutMs: 1_000 })
    const client = await postgres.pool.connect()
    await client.query(`BEGIN; SELECT 1 FROM ${postgres.schema}.event FOR UPDATE`)
    finish()
    const statements = new Set<string>()
    await vi.waitFor(async () => {
      for (const statement of await blocked()) statements.add(statement)
      expect(statements.size).toBeGreaterThan(1)
    })
    await client.query('COMMIT')
    client.release()
    await postgres.allEnded()
    expect(handler).toHaveBeenCalledTimes(1)
    expect(logged).toEqual([])
  })

  test('is missing for at most 64 events and the running ones, whatever waits', async () => {
    const front = postgres.receiver({ handles: false }).onAny(() => {}, { name: 'handle' })
    await front.ready()
    await Promise.all(Array.from({ length: 200 }, (_, index) => accept(front, `media ${index}`)))
    const client = await postgres.pool.connect()
    onTestFinished(() => client.release(true))
    await client.query(`BEGIN; LOCK TABLE ${postgres.schema}.event IN SHARE MODE`)
    const handler = vi.fn()
    postgres.receiver({ concurrency: 4 }).onAny(handler, { name: 'handle' })
    await vi.waitFor(() => expect(handler.mock.calls.length).toBeGreaterThanOrEqual(8), 10_000)
    await new Promise((resolve) => setTimeout(resolve, 300))
    expect(handler.mock.calls.length).toBeLessThanOrEqual(64 + 4)
    await client.query('COMMIT')
    await vi.waitFor(() => expect(handler).toHaveBeenCalledTimes(200), 10_000)
  })

  test('is written again and again when the statement fails, which is logged', async () => {
    const { handler, logged, finish } = await handling()
    await postgres.query('ALTER TABLE $schema.event RENAME TO moved')
    finish()
    const failed = ['error', 'the inbox could not record the result of an event', { err: expect.any(Error), lanes: 1 }]
    await vi.waitFor(() => expect(logged).toContainEqual(failed))
    await postgres.query('ALTER TABLE $schema.moved RENAME TO event')
    await postgres.allEnded()
    expect(handler).toHaveBeenCalledTimes(1)
    expect(logged.filter(([level]) => level === 'warn')).toEqual([])
  })

  test('is written although Postgres refuses another one of the same moment', async () => {
    const receiver = postgres.receiver({}, { eventKey: ({ mediaId }) => mediaId, logger: silent })
    const go = signalled()
    let started = 0
    receiver.onAny(async () => {
      started++
      await go.promise
    })
    await receiver.ready()
    for (const mediaId of ['refused', 'one', 'two']) await accept(receiver, mediaId)
    await vi.waitFor(() => expect(started).toBe(3))
    await postgres.query(
      "ALTER TABLE $schema.event ADD CONSTRAINT refuses CHECK (ended_at IS NULL OR head ->> 1 <> 'refused')",
    )
    go.resolve()
    await vi.waitFor(async () => expect(await postgres.unfinished()).toHaveLength(1))
    await postgres.query('ALTER TABLE $schema.event DROP CONSTRAINT refuses')
    await postgres.allEnded()
    expect(started).toBe(3)
  })

  test('is written before the events of its process go to others, when the inbox closes', async () => {
    // Postgres does not cancel the statement, however slow the machine is.
    const { receiver, finish } = await handling({ timeoutMs: 60_000 })
    const client = await postgres.pool.connect()
    await client.query(`BEGIN; LOCK TABLE ${postgres.schema}.event`)
    finish()
    await vi.waitFor(async () => expect(await blocked('lock_held')).toHaveLength(1))
    // By this clock, closing does not reach the time for which it waits for Postgres.
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] })
    onTestFinished(() => void vi.useRealTimers())
    const closing = receiver.close({ timeoutMs: 1 })
    for (let ms = 0; ms < 20; ms++) {
      await vi.advanceTimersByTimeAsync(1)
      await postgres.query('SELECT pg_sleep(0.005)')
    }
    await client.query('COMMIT')
    client.release()
    expect(await closing).toEqual({ unfinished: [] })
    expect(await postgres.unfinished()).toEqual([])
  })

  test('warns if another process has an event whose result it records, and only then', async () => {
    const warnings: unknown[] = []
    const warn = (details: object, message: string) => void warnings.push([details, message])
    const receiver = postgres.receiver({}, { logger: { ...silent, warn }, eventKey: ({ mediaId }) => mediaId })
    let handled = 0
    receiver.onAny(async ({ mediaId }) => {
      if (mediaId === 'taken') await postgres.query('UPDATE $schema.lane SET owner = gen_random_uuid()')
      handled++
    })
    await receiver.ready()
    await accept(receiver, 'kept')
    await postgres.allEnded()
    expect(warnings).toEqual([])
    await accept(receiver, 'taken')
    await vi.waitFor(() => expect(warnings).toHaveLength(1))
    expect(warnings).toEqual([[{}, 'the lease of an event was lost before its result was recorded']])
    expect(handled).toBe(2)
    expect(await postgres.unfinished()).toHaveLength(1)
  })
})
