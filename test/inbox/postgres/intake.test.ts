import { describe, expect, onTestFinished, test, vi } from 'vitest'
import type { AcceptedEvent } from '../../../src/inbox/inbox.ts'
import type { Database } from '../../../src/inbox/postgres/database.ts'
import { Intake } from '../../../src/inbox/postgres/intake.ts'
import { hashKey } from '../../../src/inbox/postgres/keys.ts'
import type { NewEvent } from '../../../src/inbox/sql/store.ts'
import { eventOf } from '../../support/inbox.ts'
import { findPostgres } from '../../support/postgres/find-postgres.ts'
import { accept, postgresTests } from './postgres-tests.ts'

/** A database that gives these answers to statements, one after another. */
function answering(...answers: readonly (Error | { hash: string }[])[]): Database {
  const query = vi.fn<() => Promise<unknown>>()
  for (const answer of answers)
    if (answer instanceof Error) query.mockRejectedValueOnce(answer)
    else query.mockResolvedValueOnce(answer)
  const measure = (_: string, run: () => unknown) => run()
  return {
    schema: '"media_webhooks"',
    channel: 'media_webhooks',
    checkReady() {},
    accepting: { query },
    measure,
  } as unknown as Database
}

const newEvent = (accepted: AcceptedEvent): NewEvent => ({ accepted, owed: [], changes: undefined })

const cutOff = new Error('Connection terminated unexpectedly')

test('an event whose first answer was lost is looked for, though it is known the second time', async () => {
  const stored = vi.fn()
  const intake = new Intake(answering(cutOff, []), 2_000, stored)
  expect(await intake.add(newEvent(eventOf('one')))).toBe(false)
  expect(stored).toHaveBeenCalledOnce()
})

test('an event whose statement failed comes before those that wait', async () => {
  let reject = (_: Error) => {}
  let resolve = (_: { hash: string }[]) => {}
  const first = new Promise<never>((_, end) => (reject = end))
  const second = new Promise<{ hash: string }[]>((end) => (resolve = end))
  const statements: string[][] = []
  const query = async (_: string, [hashes = []]: string[][]) => {
    statements.push(hashes)
    return statements.length === 1 ? first : statements.length === 2 ? second : hashes.map((hash) => ({ hash }))
  }
  const intake = new Intake(Object.assign(answering(), { accepting: { query } }), 60_000, () => {})
  const added: Promise<boolean>[] = []
  for (const key of ['failed', 'running', 'waiting']) {
    added.push(intake.add(newEvent(eventOf(key))))
    await new Promise((next) => setTimeout(next, 5))
  }
  reject(cutOff)
  await expect.poll(() => statements.length).toBe(3)
  resolve([])
  expect(await Promise.all(added)).toEqual([true, false, true])
  expect(statements[2]).toEqual([hashKey('failed'), hashKey('waiting')])
})

test('an event that was known immediately is not searched for', async () => {
  const stored = vi.fn()
  const intake = new Intake(answering([]), 2_000, stored)
  expect(await intake.add(newEvent(eventOf('one')))).toBe(false)
  expect(stored).not.toHaveBeenCalled()
})

test('an event that has no JSON fails alone, and at once', async () => {
  const { event, ...rest } = eventOf('bad')
  const database = answering()
  const intake = new Intake(
    Object.assign(database, {
      accepting: { query: async (_: string, [hashes]: string[][] = []) => hashes?.map((hash) => ({ hash })) },
    }),
    2_000,
    () => {},
  )
  const good = intake.add(newEvent(eventOf('good')))
  expect(() => intake.add(newEvent({ ...rest, event: { ...event, payload: { size: 1n } } } as never))).toThrow('BigInt')
  expect(await good).toBe(true)
})

test('an event that Postgres rejects fails alone', async () => {
  const rejected = Object.assign(new Error('invalid input syntax'), { code: '22P02', severity: 'ERROR' })
  const query = async (_: string, [hashes = [], , events = []]: string[][] = []) => {
    if (events.some((event) => event.includes('bad'))) throw rejected
    return hashes.map((hash) => ({ hash }))
  }
  const intake = new Intake(Object.assign(answering(), { accepting: { query } }), 2_000, () => {})
  const added = ['one', 'bad', 'two'].map((name) => intake.add(newEvent(eventOf(name))))
  expect((await Promise.allSettled(added)).map(({ status }) => status)).toEqual(['fulfilled', 'rejected', 'fulfilled'])
})

test('large events are stored although only half a megabyte arrives in time', async () => {
  const sent: number[] = []
  const query = async (_: string, [hashes = [], , events = []]: string[][] = []) => {
    const bytes = events.reduce((sum, event) => sum + event.length, 0)
    sent.push(bytes)
    if (bytes > 500_000) throw new Error('Query read timeout')
    return hashes.map((hash) => ({ hash }))
  }
  const intake = new Intake(Object.assign(answering(), { accepting: { query } }), 2_000, () => {})
  const large = (index: number) => {
    const { event, ...rest } = eventOf(`event ${index}`)
    return { ...rest, event: { ...event, payload: { text: 'x'.repeat(60_000) } } }
  }
  const added = Array.from({ length: 100 }, (_, index) => intake.add(newEvent(large(index) as never)))
  expect(await Promise.all(added)).toEqual(Array(100).fill(true))
  // The two that were on their way, and their halves.
  expect(sent.filter((bytes) => bytes > 500_000).length).toBeLessThanOrEqual(4)
})

/** A database that keeps statements until it is told to answer, or gives them up after 2 s. */
function hanging() {
  vi.useFakeTimers()
  onTestFinished(() => void vi.useRealTimers())
  let answers = false
  const statements: (readonly string[])[] = []
  const query = (_: string, [hashes, , events]: string[][] = []): Promise<unknown> => {
    statements.push(events as string[])
    if (answers) return Promise.resolve(hashes?.map((hash) => ({ hash })))
    return new Promise((_, reject) => setTimeout(() => reject(new Error('Query read timeout')), 2_000))
  }
  const answer = () => {
    answers = true
  }
  const database: Database = Object.assign(answering(), { accepting: { query } })
  const intake = new Intake(database, 2_000, () => {})
  const addAll = (name: string, count: number, filler?: string) =>
    Promise.allSettled(
      Array.from({ length: count }, (_, index) => {
        const { event, ...rest } = eventOf(`${name} ${index}`)
        return intake.add(newEvent({ ...rest, event: { ...event, ...(filler !== undefined && { title: filler }) } }))
      }),
    )
  return { statements, answer, addAll }
}

test('events that come after an outage are stored immediately, however many were given up in it', async () => {
  const { answer, addAll } = hanging()
  const during = addAll('during', 3_000)
  await vi.advanceTimersByTimeAsync(2_000)
  expect((await during).filter(({ status }) => status === 'rejected')).toHaveLength(3_000)
  await vi.advanceTimersByTimeAsync(100)
  answer()
  const after = addAll('after', 5)
  await vi.advanceTimersByTimeAsync(10)
  expect(await after).toEqual(Array.from({ length: 5 }, () => ({ status: 'fulfilled', value: true })))
})

test('large events are stored a few at a time', async () => {
  const { statements, answer, addAll } = hanging()
  answer()
  const added = addAll('large', 150, 'x'.repeat(60_000))
  await vi.advanceTimersByTimeAsync(10)
  expect((await added).filter(({ status }) => status === 'fulfilled')).toHaveLength(150)
  expect(statements.flat()).toHaveLength(150)
  for (const events of statements) expect(events.join('').length).toBeLessThan(1_100_000)
})

describe.skipIf(!findPostgres())('processes that accept the same events at the same time', () => {
  const postgres = postgresTests()

  test('has a transaction id before it takes the ids of events, so that no claim passes them unseen', async () => {
    const receiver = postgres.receiver({ handles: false, timeoutMs: 10_000 }).onAny(() => {})
    await receiver.ready()
    await accept(receiver, 'media')
    const client = await postgres.pool.connect()
    onTestFinished(() => client.release())
    const [row] = await postgres.query<{ hash: string }>('SELECT hash::text FROM $schema.key')
    await postgres.query('TRUNCATE $schema.key, $schema.event')
    // Another session is storing the same key. The id is taken before the statement waits for it.
    await client.query(`BEGIN; INSERT INTO ${postgres.schema}.key (hash, id) VALUES ('${row?.hash}', 0)`)
    const accepted = accept(receiver, 'media')
    const waiting = `SELECT backend_xid::text AS id FROM pg_stat_activity
      WHERE wait_event_type = 'Lock' AND query LIKE '%nextval%'`
    await vi.waitFor(async () => expect(await postgres.query(waiting)).toEqual([{ id: expect.any(String) }]))
    await client.query('ROLLBACK')
    expect(await accepted).toBe('accepted')
  })

  test('do not block each other, in any order in which each of them receives the events', async () => {
    // Postgres resolves no deadlock by itself.
    const connection = { connectionString: postgres.server.url, options: '-c deadlock_timeout=1h' }
    const receivers = [1, 2].map(() => postgres.receiver({ connection, handles: false, timeoutMs: 10_000 }))
    await Promise.all(receivers.map((receiver) => receiver.onAny(() => {}).ready()))
    // Slow, so that the statements of both run at the same time.
    await postgres.query(`
      CREATE FUNCTION $schema.slowly() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN PERFORM pg_sleep(0.01); RETURN NEW; END';
      CREATE TRIGGER slowly BEFORE INSERT ON $schema.key FOR EACH ROW EXECUTE FUNCTION $schema.slowly()`)
    const media = Array.from({ length: 20 }, (_, index) => `media ${index}`)
    const orders = [media, media.toReversed()]
    const outcomes = await Promise.all(
      receivers.flatMap((receiver, index) => orders[index]?.map((mediaId) => accept(receiver, mediaId)) ?? []),
    )
    expect(outcomes.filter((outcome) => outcome === 'accepted')).toHaveLength(20)
    expect(outcomes.filter((outcome) => outcome === 'duplicate')).toHaveLength(20)
  })
})
