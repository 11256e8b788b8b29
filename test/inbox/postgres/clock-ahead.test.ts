import { describe, expect, test } from 'vitest'
import { deliver, samplePayload } from '../../../src/testing/index.ts'
import { until } from '../../support/inbox.ts'
import { findPostgres } from '../../support/postgres/find-postgres.ts'
import { accept, postgresTests } from './postgres-tests.ts'

/** Maximum delay of a retry (s). It is random, and long enough that no retry is due during the test. */
const tenHours = 36_000

describe.skipIf(!findPostgres())('once the clock of Postgres is right again, after it was 30 days ahead', () => {
  const { receiver, query } = postgresTests()

  /** Writes what would be in the tables if the clock had been ahead so far. */
  async function wasAhead() {
    for (const table of ['event', 'expectation'])
      await query(
        `UPDATE $schema.${table} SET due_at = due_at + interval '30 days', delayed_at = delayed_at + interval '30 days'`,
      )
    await query("UPDATE $schema.lane SET ready_at = ready_at + interval '30 days' WHERE ready_at < 'infinity'")
  }

  /** The time until something in a table is due, in seconds. */
  const duesIn = async (table: string) =>
    (await query<{ s: number }>(`SELECT extract(epoch FROM due_at - now())::float8 AS s FROM $schema.${table}`)).map(
      ({ s }) => s,
    )

  const between = (least: number, most: number) => (seconds: number) => seconds >= least && seconds <= most

  async function waiting(count: number) {
    const failing = receiver({}, { retry: { baseMs: tenHours * 1_000, maxMs: tenHours * 1_000 } }).on(
      'encoding.finished',
      () => {
        throw new Error('no')
      },
    )
    await failing.ready()
    for (let index = 0; index < count; index++) await accept(failing, `m ${index}`)
    await until(async () => (await query('SELECT FROM $schema.event WHERE due_at IS NOT NULL')).length === count)
    return failing
  }

  test('a retry keeps its delay', async () => {
    await waiting(1)
    const [before = 0] = await duesIn('event')
    await wasAhead()
    await receiver({ handles: false }).ready()
    await until(async () => (await duesIn('event')).every((seconds) => seconds <= before + 60))
    expect((await duesIn('event')).every(between(before - 60, before + 60))).toBe(true)
  })

  test('more retries than a step corrects keep theirs', async () => {
    await waiting(1)
    await query(`INSERT INTO $schema.event (hash, media, event, head, received_at, due_at, delayed_at)
      SELECT gen_random_uuid(), media, event, head, received_at, due_at, delayed_at
      FROM $schema.event, generate_series(1, 2500)`)
    await wasAhead()
    await receiver({ handles: false }).ready()
    await until(async () => (await duesIn('event')).every(between(0, tenHours)))
  })

  test.each([0, 1])(
    'a lane that was freed meanwhile is looked for, also with %i crashes and a retry from before',
    async (crashes) => {
      await waiting(1)
      await query("UPDATE $schema.lane SET ready_at = now() + interval '30 days', crashes = $1", [crashes])
      await receiver({ handles: false }).ready()
      await until(async () => (await query('SELECT FROM $schema.lane WHERE ready_at <= now()')).length === 1)
    },
  )

  test('an event that awaits a handler still becomes too old in a day', async () => {
    const front = receiver({ handles: false }).on('encoding.finished', () => {}, { name: 'b' })
    const other = receiver().on('encoding.started', () => {})
    await Promise.all([front.ready(), other.ready()])
    await accept(front, 'm')
    await until(async () => (await query('SELECT FROM $schema.event WHERE awaits IS NOT NULL')).length === 1)
    await wasAhead()
    await receiver({ handles: false }).ready()
    await until(async () => (await duesIn('event')).every(between(80_000, 86_400)))
  })

  test('an expectation keeps its deadline', async () => {
    const expecting = receiver().expect('encoding.started', { then: 'encoding.finished', within: '1 h' }, () => {})
    await expecting.ready()
    await deliver(expecting, samplePayload('encoding.started', { media_id: 'm' }))
    expect((await duesIn('expectation')).map(between(3_500, 3_600))).toEqual([true])
    await wasAhead()
    await receiver({ handles: false }).ready()
    await until(async () => (await duesIn('expectation')).every(between(3_500, 3_600)))
  })

  test('an event is still retried now', async () => {
    const failing = await waiting(1)
    const [event] = (await failing.inbox.events?.list())?.events ?? []
    await query("UPDATE $schema.event SET due_at = now() + interval '30 days', delayed_at = due_at")
    expect(await failing.inbox.events?.retryNow(event?.key ?? '')).toBe(true)
    await until(async () => (await failing.inbox.events?.get(event?.key ?? ''))?.attempts === 2)
  })
})
