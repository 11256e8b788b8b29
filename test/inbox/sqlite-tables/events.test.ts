import { expect, onTestFinished, test } from 'vitest'
import type { Expectations } from '../../../src/inbox/inbox.ts'
import { openDatabase } from '../../../src/inbox/sqlite/driver.ts'
import { SqliteCleanUp } from '../../../src/inbox/sqlite-tables/clean-up.ts'
import { SqliteEvents } from '../../../src/inbox/sqlite-tables/events.ts'
import { makeTables } from '../../../src/inbox/sqlite-tables/schema.ts'
import { eventOf } from '../../support/inbox.ts'
import { freshPath } from '../sqlite/sqlite-tests.ts'

const hourMs = 3_600_000

async function tables() {
  const database = openDatabase(await freshPath())
  onTestFinished(() => void database.close())
  makeTables(database)
  const events = new SqliteEvents(database, (text) => text)
  /** Stores an event, and returns its row. */
  const accept = (key: string, effects?: Expectations) =>
    events.accept(events.write(eventOf(key, 'media'), effects)) as number
  const dueAt = (row: number) => events.get(row)?.due_at as number
  /** Makes an event wait for its retry. */
  const postpone = (row: number, inMs: number, delayMs = inMs) =>
    events.postpone(row, { attempts: 1, completed: [] }, { at: Date.now() + inMs, inMs: delayMs })
  const cleanUp = () => new SqliteCleanUp(database, hourMs).step()
  return { database, events, accept, dueAt, postpone, cleanUp }
}

/** The expectations that an event begins, each with the time until it is due (ms). */
const beginning = (duesInMs: Readonly<Record<string, number>>): Expectations => ({
  at: new Date(1),
  ends: [],
  begins: Object.entries(duesInMs).map(([key, dueInMs]) => {
    const dueAt = new Date(Date.now() + dueInMs)
    return { rule: key, dueAt, overdue: { ...eventOf(key), receivedAt: dueAt } }
  }),
})

test('a wait for a retry is shortened to its delay, and never made longer', async () => {
  const { events, accept, dueAt, postpone } = await tables()
  const [long, short] = [accept('long'), accept('short')]
  postpone(long, 30 * 24 * hourMs, 1_000)
  postpone(short, 1_000, hourMs)
  const before = dueAt(short)
  for (const row of [long, short]) events.bringForward(row)
  expect(dueAt(long)).toBeLessThanOrEqual(Date.now() + 1_000)
  expect(dueAt(short)).toBe(before)
})

test('a retry can be asked for again once the next attempt has failed, although the request is still there', async () => {
  const { events, accept, postpone } = await tables()
  const row = accept('one')
  postpone(row, hourMs)
  expect(events.askRetry('one')).toBe(true)
  expect(events.askRetry('one')).toBe(false)
  postpone(row, hourMs)
  expect(events.askRetry('one')).toBe(true)
  expect(events.askedRetries()).toEqual(new Set([row]))
})

test('an event that waits for its retry is not the oldest that waits', async () => {
  const { events, accept, postpone } = await tables()
  postpone(accept('retrying'), hourMs)
  expect(events.counts()).toEqual({ waiting: 0, retrying: 1 })
  accept('waiting')
  expect(events.counts()).toEqual({ waiting: 1, retrying: 1, oldestWaitingAt: eventOf('waiting').receivedAt })
})

test('what is overdue is accepted in the order of its deadlines, a part at a time, and once', async () => {
  const { events, accept } = await tables()
  accept('begin', beginning({ third: -1_000, first: -3_000, known: -4_000, second: -2_000, later: hourMs }))
  accept('known')
  const rows = [...events.acceptDue(2), ...events.acceptDue(1), ...events.acceptDue(10)]
  expect(rows.map((row) => JSON.parse(events.get(row)?.event as string).key)).toEqual(['first', 'second', 'third'])
  expect(events.expectations.list().map(({ rule }) => rule)).toEqual(['later'])
})

test('an end is remembered since it was last accepted, and not if a clock was ahead', async () => {
  const { database, events, accept, cleanUp } = await tables()
  let ends = 0
  const rules = ['fresh', 'renewed', 'old', 'ahead']
  const endAll = (...ended: readonly string[]) => {
    for (const rule of ended) accept(`end ${++ends}`, { at: new Date(1), begins: [], ends: [rule] })
  }
  const age = (ms: number) => database.prepare('UPDATE inbox_end SET accepted_at = accepted_at - ?').run(ms)
  endAll('ahead')
  age(-4 * hourMs)
  endAll('renewed', 'old')
  age(2 * hourMs)
  endAll('renewed', 'fresh')
  cleanUp()
  accept('begin', beginning(Object.fromEntries(rules.map((rule) => [rule, hourMs]))))
  expect(events.expectations.list().map(({ rule }) => rule)).toEqual(['old', 'ahead'])
})
