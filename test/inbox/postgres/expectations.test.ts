import { setTimeout as sleep } from 'node:timers/promises'
import { describe, expect, onTestFinished, test, vi } from 'vitest'
import type { AcceptedEvent, Expectation, ExpectationChanges } from '../../../src/inbox/inbox.ts'
import { PostgresDatabase } from '../../../src/inbox/postgres/database.ts'
import { openInboxDatabase, type PostgresInboxOptions, postgresInbox } from '../../../src/inbox/postgres.ts'
import { fireOverdue } from '../../../src/inbox/sql/expectations.ts'
import { deliver, samplePayload } from '../../../src/testing/index.ts'
import { eventOf, openInbox } from '../../support/inbox.ts'
import { findPostgres } from '../../support/postgres/find-postgres.ts'
import { future, upgraded } from '../../support/unreadable.ts'
import { postgresTests } from './postgres-tests.ts'

const laterMs = 60_000

/** The expectation that an event begins. */
function expectationOf(key: string, { rule = 'rule', media = 'm', dueInMs = laterMs } = {}): Expectation {
  const dueAt = new Date(Date.now() + dueInMs)
  const { event } = eventOf(`overdue:${rule}:${key}`, media)
  return { rule, dueAt, overdue: { event, receivedAt: dueAt } }
}

describe.skipIf(!findPostgres())('the expectations of postgresInbox', () => {
  const postgres = postgresTests()

  /** Opens an inbox on the tables of the test, which is closed with it. */
  async function open(options: Partial<PostgresInboxOptions> = {}) {
    const { pool, schema } = postgres
    const { inbox, calls, changes } = openInbox(postgresInbox({ pool, schema, ...options }))
    onTestFinished(async () => {
      calls.finishAll()
      await inbox.close({ timeoutMs: 1_000 })
    })
    await inbox.ready?.()
    const accepts = (accepted: AcceptedEvent, effect: ExpectationChanges) => {
      changes.set(accepted.event.key, effect)
      return inbox.accept(accepted)
    }
    return {
      inbox,
      calls,
      begin(key: string, { rule = 'rule', media = 'm', at = 0, dueInMs = laterMs } = {}) {
        const begins = [expectationOf(key, { rule, media, dueInMs })]
        return accepts(eventOf(key, media), { at: new Date(at), begins, ends: [] })
      },
      end: (key: string, { rule = 'rule', media = 'm', at = 0 } = {}) =>
        accepts(eventOf(key, media), { at: new Date(at), begins: [], ends: [rule] }),
    }
  }

  const openOnes = async () =>
    (await postgres.query<{ event: { key: string } }>('SELECT event FROM $schema.expectation')).map(
      ({ event }) => event.key,
    )
  const overdueOnes = async () =>
    (
      await postgres.query<{ event: { key: string } }>(
        'SELECT event FROM $schema.event WHERE event IS NOT NULL ORDER BY id',
      )
    )
      .map(({ event }) => event.key)
      .filter((key) => key.startsWith('overdue:'))

  /** Makes the statements that change rows of a table wait before they do. */
  const slowDown = (table: string, change: 'INSERT' | 'DELETE', when = 'true') =>
    postgres.query(`
      CREATE FUNCTION $schema.slowly() RETURNS trigger LANGUAGE plpgsql
        AS 'BEGIN PERFORM pg_sleep(1); RETURN coalesce(NEW, OLD); END';
      CREATE TRIGGER slowly BEFORE ${change} ON $schema.${table} FOR EACH ROW WHEN (${when})
        EXECUTE FUNCTION $schema.slowly()`)

  const accepting = { handles: false }

  test.each([-180_000, 180_000])('are due by one clock, if that of the process is %i ms off', async (offMs) => {
    const { begin } = await open(accepting)
    vi.useFakeTimers({ toFake: ['Date'], now: Date.now() + offMs })
    onTestFinished(() => void vi.useRealTimers())
    await begin('one', { dueInMs: 120_000 })
    const [due] = await postgres.query<{ seconds: number }>(
      'SELECT extract(epoch FROM due_at - now())::float8 AS seconds FROM $schema.expectation',
    )
    expect(due?.seconds).toBeGreaterThan(90)
    expect(due?.seconds).toBeLessThanOrEqual(121)
  })

  test('end in the same statement as they begin, in either order', async () => {
    const { begin, end } = await open(accepting)
    await Promise.all([
      begin('one', { media: 'a' }),
      end('end of one', { media: 'a' }),
      end('end of two', { media: 'b' }),
      begin('two', { media: 'b' }),
      begin('three', { media: 'c', at: 1 }),
      end('end before three', { media: 'c', at: 0 }),
    ])
    expect(await openOnes()).toEqual(['overdue:rule:three'])
  })

  test.each([
    ['begin', 'expectation', 'true'],
    ['end', 'expectation_end', 'NEW.ended_at IS NOT NULL'],
  ])('end although the %s is not committed when another process accepts its counterpart', async (slow, table, when) => {
    const [first, second] = await Promise.all([open(accepting), open(accepting)])
    await slowDown(table, 'INSERT', when)
    const begun = () => first.begin('one')
    const ended = () => second.end('end')
    const [slower, other] = slow === 'begin' ? [begun, ended] : [ended, begun]
    const accepted = Promise.resolve(slower())
    await sleep(300)
    expect(await Promise.all([accepted, other()])).toEqual(['accepted', 'accepted'])
    expect(await openOnes()).toEqual([])
  })

  test('end in processes that accept begins and ends of the same media items at the same time', async () => {
    const processes = await Promise.all([open(accepting), open(accepting), open(accepting)])
    const media = Array.from({ length: 300 }, (_, index) => `media ${index}`)
    const orders = [media, media.toReversed()]
    await Promise.all(
      orders.flatMap((order, way) =>
        order.map(async (name, index) => {
          const { begin, end } = processes[(index + way) % 3] as (typeof processes)[0]
          await (way === 0 ? begin(`begin ${name}`, { media: name }) : end(`end ${name}`, { media: name }))
        }),
      ),
    )
    expect(await openOnes()).toEqual([])
  })

  test('are overdue once, although they were due while no process ran, and several are started then', async () => {
    const front = await open(accepting)
    await front.begin('one', { dueInMs: 100 })
    await front.begin('two', { media: 'other', dueInMs: laterMs })
    await front.inbox.close()
    await sleep(200)
    const processes = await Promise.all([open(), open(), open()])
    const isReported = (key: string) =>
      postgres.query(`SELECT FROM $schema.event WHERE ended_at IS NOT NULL AND head::text LIKE '%${key}%'`)
    for (const { calls } of processes) calls.finishAll()
    await vi.waitFor(async () => expect(await isReported('overdue:rule:one')).toHaveLength(1))
    expect(await openOnes()).toEqual(['overdue:rule:two'])
    await sleep(300)
    expect(await isReported('overdue:rule:')).toHaveLength(1)
  })

  test('are not overdue if an end that waits for its commit at the deadline is accepted', async () => {
    const front = await open(accepting)
    await front.begin('one', { dueInMs: 500 })
    await open()
    await slowDown('expectation', 'DELETE', 'OLD.due_at > now()')
    expect(await front.end('end')).toBe('accepted')
    await sleep(1_500)
    expect(await openOnes()).toEqual([])
    expect(await overdueOnes()).toEqual([])
  })

  test('stay overdue if the end has to wait for the commit of that', async () => {
    const front = await open(accepting)
    await front.begin('one', { dueInMs: 300 })
    await slowDown('expectation', 'DELETE', 'OLD.due_at <= now()')
    const { calls } = await open()
    calls.finishAll()
    await sleep(700)
    expect(await front.end('end')).toBe('accepted')
    await vi.waitFor(async () =>
      expect(
        await postgres.query("SELECT FROM $schema.event WHERE ended_at IS NOT NULL AND head::text LIKE '%overdue:%'"),
      ).toHaveLength(1),
    )
  })

  test('are handed over in time after a search that the network held up', async () => {
    const { proxy, pool } = await postgres.throughProxy()
    const sent = proxy.delay('expectation WHERE due_at <= now()')
    const { begin } = await open({ pool })
    const passOn = await sent
    await begin('one', { dueInMs: 2_000 })
    await sleep(1_500)
    await passOn()
    await vi.waitFor(async () => expect(await openOnes()).toEqual([]), { timeout: 5_000 })
  })

  test('remember an end for as long as keys', async () => {
    const front = await open({ ...accepting, ttlMs: 1_000 })
    await front.end('end')
    await front.begin('two', { media: 'other' })
    const rows = () => postgres.query('SELECT FROM $schema.expectation_end')
    expect(await rows()).toHaveLength(1)
    // A clean-up takes place when an inbox is opened, and every minute.
    await open({ ...accepting, ttlMs: laterMs })
    await front.begin('one')
    expect(await openOnes()).toEqual(['overdue:rule:two'])
    await sleep(1_000)
    await open({ ...accepting, ttlMs: 1_000 })
    await vi.waitFor(async () => expect(await rows()).toHaveLength(0))
    await front.begin('again')
    expect((await openOnes()).toSorted()).toEqual(['overdue:rule:again', 'overdue:rule:two'])
  })

  test('keep the latest end, and remember it since one was last accepted', async () => {
    const { begin, end } = await open(accepting)
    const ends = () =>
      postgres.query(
        `SELECT ended_at::int AS at, accepted_at > now() - interval '1 h' AS is_new FROM $schema.expectation_end`,
      )
    await Promise.all([end('one', { at: 1 }), end('five', { at: 5 }), end('three', { at: 3 })])
    expect(await ends()).toEqual([{ at: 5, is_new: true }])
    await postgres.query("UPDATE $schema.expectation_end SET accepted_at = now() - interval '2 h'")
    await begin('later', { at: 9 })
    expect(await ends()).toEqual([{ at: 5, is_new: false }])
    await end('two', { at: 2 })
    expect(await ends()).toEqual([{ at: 5, is_new: true }])
  })

  test('begin once for an event whose key was forgotten', async () => {
    const { begin } = await open(accepting)
    await begin('one')
    await postgres.query('DELETE FROM $schema.event')
    expect(await begin('one')).toBe('accepted')
    expect(await openOnes()).toEqual(['overdue:rule:one'])
  })

  describe('are handed over', () => {
    /** Opens expectations that are due in so many ms, and returns what hands them over. */
    async function dueIn(dues: Readonly<Record<string, number>>) {
      const { inbox, begin } = await open(accepting)
      for (const key of Object.keys(dues)) await begin(key)
      await inbox.close()
      for (const [key, ms] of Object.entries(dues))
        await postgres.query(
          `UPDATE $schema.expectation SET due_at = now() + $2::float8 * interval '1 ms' WHERE event ->> 'key' = $1`,
          [`overdue:rule:${key}`, ms],
        )
      const database = PostgresDatabase.inspected(postgres.pool, postgres.schema, 2_000)
      return { fireOverdue: () => fireOverdue({ database, host: { handlersOf: () => [] }, stored() {} }) }
    }
    const keysOf = (...keys: readonly string[]) => keys.map((key) => `overdue:rule:${key}`)

    test('in the order of their deadlines, and then at the next deadline', async () => {
      const overdue = await dueIn({ second: -1_000, first: -2_000, later: 50_000, soon: 20_000 })
      const nextInMs = await overdue.fireOverdue()
      expect(await overdueOnes()).toEqual(keysOf('first', 'second'))
      expect((await openOnes()).toSorted()).toEqual(keysOf('later', 'soon'))
      expect(nextInMs).toBeGreaterThan(0)
      expect(nextInMs).toBeLessThanOrEqual(20_000)
    })

    test('500 at a time, the first ones first', async () => {
      const overdue = await dueIn({})
      await postgres.query(`
        INSERT INTO $schema.expectation (hash, subject, media, rule, began_at, due_at, event, head, owed)
        SELECT gen_random_uuid(), gen_random_uuid(), 1, '"rule"', 0, now() - n * interval '1 s',
          json_build_object('key', 'overdue:' || n), '[]', '[]' FROM generate_series(1, 501) AS n`)
      await overdue.fireOverdue()
      expect(await overdueOnes()).toHaveLength(500)
      expect(await openOnes()).toEqual(['overdue:1'])
      await overdue.fireOverdue()
      expect(await overdueOnes()).toEqual(Array.from({ length: 501 }, (_, index) => `overdue:${501 - index}`))
    })

    test('except those whose events are known', async () => {
      const overdue = await dueIn({ known: -2_000, free: -1_000 })
      await postgres.query(`INSERT INTO $schema.event (hash, received_at)
        SELECT hash, now() FROM $schema.expectation WHERE event ->> 'key' = 'overdue:rule:known'`)
      await overdue.fireOverdue()
      expect(await overdueOnes()).toEqual(keysOf('free'))
      expect(await openOnes()).toEqual([])
    })
  })

  test('do not slow down what ends them, however many there are', async () => {
    const { begin, end } = await open(accepting)
    await begin('one', { media: 'media 1' })
    await postgres.query(`
      INSERT INTO $schema.expectation
      SELECT gen_random_uuid(), gen_random_uuid(), 1, '"rule"', 0, now() + interval '1 day', '{}', '[]', NULL, '[]'
      FROM generate_series(1, 100000)`)
    const read = async () => {
      const [row] = await postgres.query<{ rows: string; scans: string }>(
        `SELECT seq_tup_read + idx_tup_fetch AS rows, idx_scan AS scans FROM pg_stat_user_tables
         WHERE schemaname = $1 AND relname = 'expectation'`,
        [postgres.schema],
      )
      return { rows: Number(row?.rows), scans: Number(row?.scans) }
    }
    const media = Array.from({ length: 500 }, (_, index) => `media ${index}`)
    const before = await read()
    await Promise.all(media.map((name) => end(`end ${name}`, { media: name })))
    await vi.waitFor(async () => expect((await read()).scans).toBeGreaterThan(before.scans + 400))
    expect((await read()).rows - before.rows).toBeLessThan(10_000)
    expect(await postgres.query("SELECT FROM $schema.expectation WHERE event::text <> '{}'")).toEqual([])
  })

  test('can be inspected from outside', async () => {
    const { inbox, begin } = await open(accepting)
    await begin('one')
    const database = await openInboxDatabase({ pool: postgres.pool, schema: postgres.schema })
    expect(await database.expected(1)).toEqual(await inbox.expected?.())
    expect(await database.stats()).toMatchObject({ expected: 1 })
  })

  test('begin and end with deliveries that were unreadable at first, and are overdue in time', async () => {
    const reported: string[] = []
    const receiver = postgres.receiver()
    receiver.expect('file.received', { then: 'encoding.finished', within: '1 h', name: 'ended' }, () => {})
    const begun = { then: 'encoding.failed', within: 500, name: 'begun' } as const
    receiver.expect('encoding.finished', begun, ({ mediaId }) => void reported.push(mediaId))
    await receiver.ready()
    await deliver(receiver, samplePayload('file.received', { media_id: 'm1', emitted_at: '2026-03-01T11:00:00Z' }))
    await deliver(receiver, future)
    expect(await receiver.inbox.expected?.()).toMatchObject([{ rule: 'ended', mediaId: 'm1' }])
    // It listens, and has looked for deadlines since: it looks again in a minute.
    await sleep(3_000)
    const [unreadable] = await receiver.inbox.deadLetters.list()
    expect(await upgraded(async () => receiver.inbox.deadLetters.replay(unreadable?.key ?? ''))).toBe(true)
    await vi.waitFor(() => expect(reported).toEqual(['m1']), 5_000)
    expect(await receiver.inbox.stats()).not.toHaveProperty('expected')
  })
})
