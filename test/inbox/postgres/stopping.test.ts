import { hostname } from 'node:os'
import { describe, expect, onTestFinished, test, vi } from 'vitest'
import { openInboxDatabase, type PostgresInboxOptions } from '../../../src/inbox/postgres.ts'
import { findPostgres } from '../../support/postgres/find-postgres.ts'
import { accept, postgresTests } from './postgres-tests.ts'

const thisProcess = `${hostname()}:${process.pid}`

describe.skipIf(!findPostgres())('running events in Postgres', () => {
  const postgres = postgresTests()

  /** Opens a front that only accepts, and a back whose handler hangs in its first attempt. */
  async function withHangingHandler(options: Partial<PostgresInboxOptions> = {}) {
    const front = postgres.receiver({ handles: false, ...options })
    const signals: AbortSignal[] = []
    const back = postgres.receiver(options).onAny((_, { signal }) => {
      signals.push(signal)
      return signals.length === 1 ? new Promise(() => {}) : undefined
    })
    for (const each of [front.onAny(() => {}), back]) await each.ready()
    const before = Date.now()
    await accept(front, 'm')
    await vi.waitFor(() => expect(signals).toHaveLength(1))
    const find = async () => (await front.inbox.history?.('m'))?.[0]
    return { front, back, signals, before, find, key: (await find())?.key ?? '' }
  }

  test('are shown in their own process with their start and that process', async () => {
    const { back, before, key } = await withHangingHandler()
    const record = await back.inbox.events?.get(key)
    expect(record).toMatchObject({ state: 'running', process: thisProcess })
    expect(Number(record?.startedAt)).toBeGreaterThanOrEqual(before)
    await back.inbox.events?.stop?.(key)
  })

  test('are shown in other processes with their start once they have been running for a third of a lease', async () => {
    const { front, back, find, key } = await withHangingHandler({ leaseMs: 1_500 })
    const { startedAt: own } = (await back.inbox.events?.get(key)) ?? {}
    expect(await find()).toMatchObject({ state: 'running', process: thisProcess })
    await vi.waitFor(async () => expect((await find())?.startedAt).toEqual(own), { timeout: 10_000 })
    expect(await front.inbox.events?.stop?.(key)).toBe(true)
    await vi.waitFor(async () => expect((await find())?.state).toBe('handled'))
    expect(await find()).not.toHaveProperty('startedAt')
  })

  test('publish only the attempts that run, and at most 100 of them', async () => {
    const back = postgres.receiver({ leaseMs: 900, concurrency: 120 }).onAny(() => new Promise(() => {}))
    await back.ready()
    const quick = performance.now()
    for (let index = 0; index < 105; index++) await accept(back, `m ${index}`)
    const published = async () => {
      const [row] = await postgres.query(`SELECT running::text FROM ${postgres.schema}.process`)
      return Object.keys(JSON.parse((row as { running: string | null } | undefined)?.running ?? '{}')).length
    }
    await vi.waitFor(async () => expect(await published()).toBe(100), { timeout: 10_000 })
    expect(performance.now() - quick).toBeGreaterThan(300)
  })

  test.each([
    ['another receiver', undefined],
    ['the command line', 'database'],
  ])('are stopped from %s, fail, and are retried', async (_, opened) => {
    const { front, signals, find, key } = await withHangingHandler()
    const database = opened && (await openInboxDatabase({ connection: postgres.server.url, schema: postgres.schema }))
    if (database) onTestFinished(() => database.close())
    const events = database ? database.events : front.inbox.events
    expect(await events?.stop?.(key)).toBe(true)
    await vi.waitFor(async () => expect((await find())?.state).toBe('handled'))
    expect(signals).toHaveLength(2)
    expect(signals[0]?.reason).toMatchObject({ code: 'stopped' })
    const failures = [{ message: 'WebhookError: stopped by an operator' }]
    expect((await find())?.failedAttempts).toMatchObject([{ number: 1, failures }])
    expect(await events?.stop?.(key)).toBe(false)
    expect(await events?.stop?.('unknown')).toBe(false)
  })

  test('are not stopped in another process that hears no notifications', async () => {
    const { front, back, signals, key } = await withHangingHandler({ listen: false })
    expect(await front.inbox.events?.stop?.(key)).toBe(false)
    expect(signals[0]?.aborted).toBe(false)
    expect(await back.inbox.events?.stop?.(key)).toBe(true)
  })
})
