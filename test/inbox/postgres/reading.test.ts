import { randomUUID } from 'node:crypto'
import { setTimeout as sleep } from 'node:timers/promises'
import { describe, expect, onTestFinished, test, vi } from 'vitest'
import { PostgresDatabase } from '../../../src/inbox/postgres/database.ts'
import { openInboxDatabase } from '../../../src/inbox/postgres.ts'
import type { InspectedInbox } from '../../../src/inbox/reading.ts'
import { SqlEvents } from '../../../src/inbox/sql/events.ts'
import { findPostgres } from '../../support/postgres/find-postgres.ts'
import { signalled } from '../../support/signalled.ts'
import { accept, postgresTests } from './postgres-tests.ts'

describe.skipIf(!findPostgres())('the events of a postgresInbox', () => {
  const postgres = postgresTests()

  /** Opens the tables of the test, which a receiver has made. */
  async function openDatabase(): Promise<InspectedInbox> {
    const database = await openInboxDatabase({ connection: postgres.server.url, schema: postgres.schema })
    onTestFinished(() => void database.close())
    return database
  }

  const keysOf = (records: readonly { readonly key: string }[]) => records.map(({ key }) => key)

  test('that one process has handled are known to the others', async () => {
    const one = postgres.receiver().onAny(() => {}, { name: 'handle' })
    await one.ready()
    await accept(one, 'media')
    const other = postgres.receiver({ handles: false }).onAny(() => {})
    await other.ready()
    const handled = { state: 'handled', type: 'encoding.finished', attempts: 1, completed: ['handle'] }
    await vi.waitFor(async () => expect(await other.inbox.history?.('media')).toMatchObject([handled]))
    const database = await openDatabase()
    const [record] = await database.history('media')
    expect(record).toMatchObject(handled)
    await vi.waitFor(async () => expect(await other.inbox.history?.('media')).toEqual([record]))
    expect((await one.inbox.events?.list({ state: 'handled' }))?.events).toEqual([record])
  })

  test('that wait behind another one of their media item are waiting, in their process and for others', async () => {
    const done = signalled()
    const receiver = postgres.receiver({ concurrency: 1 }, { eventKey: ({ userId }) => userId as string })
    receiver.onAny(() => done.promise)
    await receiver.ready()
    for (const key of ['first', 'second']) await accept(receiver, 'media', key)
    const database = await openDatabase()
    for (const events of [receiver.inbox.events, database.events]) {
      const states = async () =>
        (await events?.list({ order: 'oldest' }))?.events.map(({ state, attempts }) => [state, attempts])
      await vi.waitFor(async () =>
        expect(await states()).toEqual([
          ['running', 1],
          ['waiting', 0],
        ]),
      )
      const keys = async (state: 'running' | 'waiting') => keysOf((await events?.list({ state }))?.events ?? [])
      expect([await keys('running'), await keys('waiting')]).toEqual([['first'], ['second']])
    }
    for (const inbox of [receiver.inbox, database])
      expect(await inbox.stats()).toMatchObject({ running: 1, waiting: 1 })
    done.resolve()
  })

  test('are counted once each, whichever process has their lane', async () => {
    const receiver = postgres.receiver({ handles: false }, { eventKey: ({ userId }) => userId as string })
    await receiver.onAny(() => {}).ready()
    for (const key of ['first', 'second']) await accept(receiver, 'media', key)
    const [first] = await postgres.query<{ id: string }>('SELECT id FROM $schema.event ORDER BY id')
    const owner = randomUUID()
    const run = { number: 1, startedAt: new Date() }
    const own = {
      owner,
      running: () => new Map([[Number(first?.id), run]]),
      stop: () => false,
      wake() {},
    }
    const events = new SqlEvents(PostgresDatabase.inspected(postgres.pool, postgres.schema, 2_000), own)
    const idle = new SqlEvents(PostgresDatabase.inspected(postgres.pool, postgres.schema, 2_000))
    const counts = async (of: SqlEvents) => {
      const { waiting, running } = await of.stats()
      const { events: listed } = await of.list({ order: 'oldest' })
      return { waiting, running, listed: listed.map(({ state }) => state) }
    }
    const oneRuns = { waiting: 1, running: 1, listed: ['running', 'waiting'] }
    expect(await counts(idle)).toEqual({ waiting: 2, running: 0, listed: ['waiting', 'waiting'] })
    await postgres.query("UPDATE $schema.lane SET ready_at = 'infinity', owner = $1", [owner])
    expect([await counts(events), await counts(idle)]).toEqual([oneRuns, oneRuns])
    await postgres.query('UPDATE $schema.event SET attempts = 1, ended_at = now(), event = NULL WHERE id = $1', [
      first?.id,
    ])
    await postgres.query('UPDATE $schema.lane SET position = $1', [first?.id])
    expect(await counts(events)).toEqual({ waiting: 1, running: 0, listed: ['handled', 'waiting'] })
    expect(await counts(idle)).toEqual({ waiting: 0, running: 1, listed: ['handled', 'running'] })
  })

  test('are retried now by any free process, when a process asks that only reads the tables', async () => {
    const keys = { eventKey: ({ userId }: { userId?: string }) => userId as string }
    const failing = postgres.receiver({}, { ...keys, retry: { baseMs: 3_600_000, maxMs: 3_600_000 } })
    failing.onAny(() => Promise.reject(new Error('no')), { name: 'handle' })
    await failing.ready()
    await accept(failing, 'media', 'one')
    const database = await openDatabase()
    await vi.waitFor(async () => expect(await database.events.get('one')).toMatchObject({ state: 'retrying' }))
    await failing.close()
    const handled = vi.fn()
    await postgres.receiver({}, keys).onAny(handled, { name: 'handle' }).ready()
    expect(handled).not.toHaveBeenCalled()
    expect(await database.events.retryNow('one')).toBe(true)
    await vi.waitFor(() => expect(handled).toHaveBeenCalledOnce())
    await vi.waitFor(async () =>
      expect(await database.events.get('one')).toMatchObject({
        state: 'handled',
        attempts: 2,
        failedAttempts: [{ number: 1, failures: [{ handler: 'handle', message: 'Error: no' }] }],
      }),
    )
    expect(await database.events.retryNow('one')).toBe(false)
  })

  /** Writes records of handled events, as if so many had been handled. */
  const writeHandled = (count: number, type: string) =>
    postgres.query(
      `INSERT INTO $schema.event (hash, media, head, received_at, ended_at)
       SELECT gen_random_uuid(), n, format('["%s","m","%s"]', $2::text, n)::json, now(), now()
       FROM generate_series(1, $1::int) AS n`,
      [count, type],
    )

  test('are found by their type among many, page by page', async () => {
    const receiver = postgres.receiver({ handles: false })
    await receiver.ready()
    await receiver.close()
    const { events } = await openDatabase()
    await writeHandled(3, 'rare')
    await writeHandled(50_000, 'frequent')
    await writeHandled(2, 'rare')
    for (const order of ['newest', 'oldest'] as const) {
      const found: string[] = []
      let cursor: string | undefined
      do {
        const page = await events.list({ type: 'rare', order, limit: 2, ...(cursor !== undefined && { cursor }) })
        found.push(...keysOf(page.events))
        cursor = page.cursor
      } while (cursor !== undefined)
      expect(found).toEqual(order === 'newest' ? ['2', '1', '3', '2', '1'] : ['1', '2', '3', '1', '2'])
    }
    expect((await events.list({ type: 'none' })).events).toEqual([])
  })

  test('are found if the sequence of their ids began again, as on a logical replica', async () => {
    const open = async () => {
      const receiver = postgres.receiver({}, { eventKey: ({ mediaId }) => mediaId }).onAny(() => {})
      await receiver.ready()
      return receiver
    }
    const handled = async (receiver: Awaited<ReturnType<typeof open>>, key: string) => {
      await accept(receiver, key)
      await vi.waitFor(async () => expect(await receiver.inbox.events?.get(key)).toMatchObject({ state: 'handled' }))
    }
    const first = await open()
    await handled(first, 'before')
    await first.close()
    await postgres.query("SELECT setval('$schema.event_id_seq', 1, false)")
    const next = await open()
    await handled(next, 'after')
    expect(await next.inbox.stats()).toMatchObject({ waiting: 0, running: 0 })
    expect(await next.inbox.events?.get('before')).toMatchObject({ state: 'handled' })
  })

  test('are forgotten with their keys', async () => {
    const receiver = postgres.receiver({ ttlMs: 400 }, { eventKey: ({ mediaId }) => mediaId }).onAny(() => {})
    await receiver.ready()
    const records = async () => keysOf((await receiver.inbox.events?.list({ state: 'handled' }))?.events ?? [])
    for (const mediaId of ['one', 'two']) await accept(receiver, mediaId)
    await vi.waitFor(async () => expect(await records()).toEqual(['two', 'one']))
    await sleep(500)
    // A clean-up takes place when an inbox is opened.
    const other = postgres.receiver({ ttlMs: 400, handles: false })
    await other.ready()
    await vi.waitFor(async () => expect(await records()).toEqual([]), { timeout: 5_000 })
    expect(await postgres.query('SELECT FROM $schema.lane')).toEqual([])
  })
})
