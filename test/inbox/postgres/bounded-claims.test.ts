import { beforeEach, describe, expect, onTestFinished, test, vi } from 'vitest'
import { claimStatement } from '../../../src/inbox/postgres/claim/claim-statement.ts'
import { hashMedia } from '../../../src/inbox/postgres/keys.ts'
import type { Handler } from '../../../src/index.ts'
import { findPostgres } from '../../support/postgres/find-postgres.ts'
import { accept, postgresTests } from './postgres-tests.ts'

const many = 60_000

describe.skipIf(!findPostgres())('a claim', () => {
  const postgres = postgresTests({ shared_preload_libraries: 'pg_stat_statements' })
  beforeEach(() => postgres.query('CREATE EXTENSION IF NOT EXISTS pg_stat_statements'))

  /** Inserts events whose columns are expressions of `n`, from 1 on. Postgres has statistics of them. */
  async function insertMany(media: string, dueAt = 'NULL', count = many, awaits = 'NULL') {
    await postgres.query(`
      INSERT INTO $schema.event (id, media, event, received_at, due_at, owed, awaits)
      SELECT nextval('$schema.event_id'), ${media}, json_build_object('type', 'encoding.finished', 'key', 'many ' || n,
        'mediaId', 'many', 'qualities', '[]'::json, 'payload', '{}'::json), now(), ${dueAt}, '[]', ${awaits}
      FROM generate_series(1, ${count}) AS n`)
    await postgres.query('ANALYZE $schema.event')
  }

  /** Opens a snapshot until the end of the test. */
  async function openSnapshot() {
    const client = await postgres.pool.connect()
    onTestFinished(async () => {
      await client.query('COMMIT')
      client.release()
    })
    await client.query('BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT 1')
  }

  async function accepting() {
    const receiver = postgres.receiver({ handles: false }).onAny(() => {})
    await receiver.ready()
    return receiver
  }

  /** Starts processes. Resolves with the media of the events that they have handled. */
  async function handling(processes: number, handle: Handler = () => {}) {
    const handled: string[] = []
    for (let index = 0; index < processes; index++) {
      const receiver = postgres.receiver().onAny(async (event, context) => {
        await handle(event, context as never)
        handled.push(event.mediaId)
      })
      await receiver.ready()
    }
    return handled
  }

  /** The number of blocks of 8 kB that a claim reads, on average, while `run` runs. */
  async function blocksPerClaim(run: () => Promise<void>): Promise<number> {
    await postgres.query('SELECT pg_stat_statements_reset()')
    await run()
    const [row] = await postgres.query<{ blocks: string }>(
      `SELECT sum(shared_blks_hit + shared_blks_read) / sum(calls) AS blocks FROM pg_stat_statements
       WHERE query LIKE '% claimed%'`,
    )
    return Number(row?.blocks)
  }

  /** The number of events of other processes that Postgres expects when it plans a claim. */
  async function expectedElsewhere(): Promise<number> {
    const client = await postgres.pool.connect()
    onTestFinished(() => client.release(true))
    const values: string[] = []
    const statement = claimStatement(postgres.schema, (index) => {
      values[index - 1] = 'NULL'
      return `$${index}`
    })
    await client.query(`SET plan_cache_mode = force_generic_plan; PREPARE claim AS ${statement}`)
    const { rows } = await client.query<{ 'QUERY PLAN': string }>(`EXPLAIN EXECUTE claim (${values})`)
    const plan = rows.map((row) => row['QUERY PLAN']).join('\n')
    const expected = Array.from(plan.matchAll(/CTE Scan on elsewhere.*rows=(\d+)/g), ([, count]) => Number(count))
    expect(expected).not.toEqual([])
    return Math.max(...expected)
  }

  /** Accepts events of ten media items, one after another, and waits until each is handled. */
  const handleTen = (receiver: Awaited<ReturnType<typeof accepting>>, handled: readonly string[]) => async () => {
    for (let index = 0; index < 10; index++) {
      await accept(receiver, `other ${index}`)
      await vi.waitFor(() => expect(handled).toContain(`other ${index}`), { interval: 5 })
    }
  }

  /** The number of claims since the statistics were reset. */
  async function claims(): Promise<number> {
    const [row] = await postgres.query<{ calls: string }>(
      `SELECT sum(calls) AS calls FROM pg_stat_statements WHERE query LIKE '% claimed%'`,
    )
    return Number(row?.calls)
  }

  /** Stops the clock of this process, so that everything is fast. */
  function stopClock(): void {
    const now = performance.now()
    const clock = vi.spyOn(performance, 'now').mockImplementation(() => now)
    onTestFinished(() => clock.mockRestore())
  }

  test('takes more events at a time while they are handled fast', async () => {
    await accepting()
    await insertMany('n', 'NULL', 4_000)
    await postgres.query('SELECT pg_stat_statements_reset()')
    stopClock()
    const handled = await handling(1)
    await vi.waitFor(() => expect(handled).toHaveLength(4_000))
    expect(await claims()).toBeLessThan(30)
  })

  test('finds all of the events that arrive together, again and again, without a second claim', async () => {
    let handled = 0
    const receiver = postgres.receiver().onAny(() => void handled++)
    await receiver.ready()
    stopClock()
    await postgres.query('SELECT pg_stat_statements_reset()')
    for (let round = 1; round <= 20; round++) {
      await Promise.all(Array.from({ length: 64 }, (_, index) => accept(receiver, `media ${round} ${index}`)))
      await vi.waitFor(() => expect(handled).toBe(64 * round), { interval: 5 })
    }
    // One for each round, and some more on a busy machine.
    expect(await claims()).toBeLessThan(36)
  })

  test('is made by few of the many processes that hear of an event', async () => {
    const receiver = await accepting()
    const handled = await handling(8)
    const mediaIds = Array.from({ length: 150 }, (_, index) => `media ${index}`)
    await postgres.query('SELECT pg_stat_statements_reset()')
    for (const mediaId of mediaIds) {
      await accept(receiver, mediaId)
      await vi.waitFor(() => expect(handled).toContain(mediaId), { interval: 5 })
    }
    expect(await claims()).toBeLessThan(600)
  })

  const untilClosed: Handler = ({ mediaId }, { signal }) =>
    new Promise<void>((resolve, reject) => {
      if (mediaId !== 'many') return resolve()
      signal.addEventListener('abort', () => reject(signal.reason))
    })

  test('reads few of the events of one media item that wait, in each of two processes', async () => {
    const receiver = await accepting()
    await insertMany('7')
    const handled = await handling(2, untilClosed)
    // Both have claimed what they may.
    await vi.waitFor(async () => expect(await postgres.claimed()).not.toEqual([]))
    expect(await blocksPerClaim(handleTen(receiver, handled))).toBeLessThan(10_000)
  })

  test('rarely reads the waiting events of one media item again while it claims those of others', async () => {
    const receiver = await accepting()
    await insertMany(hashMedia('many'))
    const handled = await handling(1, untilClosed)
    await handleTen(receiver, handled)()
    await postgres.query('SELECT pg_stat_statements_reset()')
    const others = Array.from({ length: 3_000 }, (_, index) => `another ${index}`)
    await Promise.all(others.map((mediaId) => accept(receiver, mediaId)))
    await vi.waitFor(() => expect(handled).toHaveLength(3_010))
    expect(await claims()).toBeLessThan(80)
  })

  test('finds the events of 250 media items behind those of one that are with another process', async () => {
    const receiver = await accepting()
    await insertMany('7')
    const handled = await handling(2, untilClosed)
    const others = Array.from({ length: 250 }, (_, index) => `other ${index}`)
    await Promise.all(others.map((mediaId) => accept(receiver, mediaId)))
    const isOther = (mediaId: string) => mediaId !== 'many'
    await vi.waitFor(() => expect(handled.filter(isOther).toSorted()).toEqual(others.toSorted()))
  })

  test.each([
    ['one media item', '7'],
    ['many media items', 'n'],
  ])('reads few of the events of %s that were handled while a snapshot is open', async (_, media) => {
    const receiver = await accepting()
    await insertMany(media)
    await openSnapshot()
    await postgres.query('DELETE FROM $schema.event')
    const handled = await handling(1)
    expect(await blocksPerClaim(handleTen(receiver, handled))).toBeLessThan(1_000)
  })

  test('expects few events of other processes, also after 20,000 claims while a snapshot is open', async () => {
    await accepting()
    await openSnapshot()
    await postgres.query(`
      WITH claimed AS (
        INSERT INTO $schema.claim (owner, events) SELECT gen_random_uuid(), '{}' FROM generate_series(1, 20000) RETURNING id
      ) SELECT count(*) FROM claimed`)
    await postgres.query('DELETE FROM $schema.claim WHERE owner NOT IN (SELECT id FROM $schema.owner)')
    expect(await expectedElsewhere()).toBeLessThan(1_000)
  })

  test('reads few of the events that were handled before Postgres analyzed the table, while a snapshot is open', async () => {
    const receiver = await accepting()
    await insertMany('n')
    await openSnapshot()
    await postgres.query('DELETE FROM $schema.event')
    await postgres.query('VACUUM ANALYZE $schema.event')
    const handled = await handling(1)
    expect(await blocksPerClaim(handleTen(receiver, handled))).toBeLessThan(600)
  })

  test.each([
    ['one media item', '7'],
    ['many media items', 'n'],
  ])('reads few of the events of %s that wait for a retry', async (_, media) => {
    const receiver = await accepting()
    await insertMany(media, `now() + interval '1 day' + n * interval '1 ms'`)
    const handled = await handling(1)
    expect(await blocksPerClaim(handleTen(receiver, handled))).toBeLessThan(1_000)
  })

  test('reads few of the events that await handlers of other processes', async () => {
    const receiver = await accepting()
    await insertMany('n', `now() + interval '1 day' + n * interval '1 ms'`, many, "ARRAY['other']")
    const handled = await handling(1)
    await postgres.query("NOTIFY $schema, 'awaited'")
    expect(await blocksPerClaim(handleTen(receiver, handled))).toBeLessThan(1_000)
    const [row] = await postgres.query<{ calls: number; blocks: number }>(
      `SELECT sum(calls)::int AS calls, (sum(shared_blks_hit + shared_blks_read) / sum(calls))::int AS blocks
       FROM pg_stat_statements WHERE query LIKE '%AS adopted'`,
    )
    expect(row?.calls).toBeGreaterThan(0)
    expect(row?.blocks).toBeLessThan(50)
  })
})
