import { expect, onTestFinished, test } from 'vitest'
import type { ExpectationChanges } from '../../../src/inbox/inbox.ts'
import { retryStep } from '../../../src/inbox/sql/events.ts'
import { readExpectedNow } from '../../../src/inbox/sql/expected.ts'
import { openDatabase } from '../../../src/inbox/sqlite/driver.ts'
import { SqliteCleanUp } from '../../../src/inbox/sqlite-tables/clean-up.ts'
import { sqliteReading } from '../../../src/inbox/sqlite-tables/event-reading.ts'
import { SqliteEvents } from '../../../src/inbox/sqlite-tables/events.ts'
import { makeTables } from '../../../src/inbox/sqlite-tables/schema.ts'
import { SqliteSql, tablesOver } from '../../../src/inbox/sqlite-tables/sql.ts'
import { eventOf } from '../../support/inbox.ts'
import { freshPath } from '../sqlite/sqlite-tests.ts'

const hourMs = 3_600_000

async function tables() {
  const database = openDatabase(await freshPath())
  onTestFinished(() => void database.close())
  makeTables(database)
  const hashKey = (text: string) => text
  const events = new SqliteEvents(database, hashKey)
  const sql = new SqliteSql(database)
  const tables = tablesOver(sql, { hashKey, checkOpen() {}, commit: async (write) => write() })
  const makeDue = (key: string) => sql.run(retryStep(tables, sqliteReading(tables), key)) === 1
  const expected = () => readExpectedNow(tables).map(({ rule }) => rule)
  /** Stores an event, and returns its id. */
  const accept = (key: string, changes?: ExpectationChanges) =>
    events.accept(events.write(eventOf(key, 'media'), changes)) as number
  const dueAt = (id: number) =>
    (database.prepare('SELECT due_at FROM inbox_event WHERE id = ?').get(id) as { due_at: number }).due_at
  return { database, events, accept, makeDue, expected, dueAt, cleanUp: new SqliteCleanUp(database, hourMs) }
}

/** Records a first attempt that has failed. */
const delay = (events: SqliteEvents, id: number, delayMs: number) =>
  events.delay(id, { delayMs, completed: ['a'], attempts: 1, isHealthy: true })

/** The expectations that an event begins, each with the time until it is due (ms). */
const beginning = (duesInMs: Readonly<Record<string, number>>): ExpectationChanges => ({
  at: new Date(1),
  ends: [],
  begins: Object.entries(duesInMs).map(([key, dueInMs]) => {
    const dueAt = new Date(Date.now() + dueInMs)
    return { rule: key, dueAt, overdue: { ...eventOf(key), receivedAt: dueAt } }
  }),
})

test('a delay that a clock that was ahead has recorded starts now, and any other stays', async () => {
  const { database, events, accept, dueAt, cleanUp } = await tables()
  const [ahead, usual] = [accept('ahead'), accept('usual')]
  for (const id of [ahead, usual]) delay(events, id, 1_000)
  database
    .prepare('UPDATE inbox_event SET due_at = due_at + ?, delayed_at = delayed_at + ? WHERE id = ?')
    .run(hourMs, hourMs, ahead)
  const before = dueAt(usual)
  expect([cleanUp.correctDelays(), cleanUp.correctDelays()]).toEqual([true, false])
  expect(dueAt(ahead)).toBeGreaterThan(Date.now())
  expect(dueAt(ahead)).toBeLessThanOrEqual(Date.now() + 1_000)
  expect(dueAt(usual)).toBe(before)
})

test('a retry can be asked for once, and again once the next attempt has failed', async () => {
  const { events, accept, makeDue } = await tables()
  const id = accept('one')
  expect(makeDue('one')).toBe(false)
  for (let attempts = 0; attempts < 2; attempts++) {
    delay(events, id, hourMs)
    expect([makeDue('one'), makeDue('one')]).toEqual([true, false])
  }
  expect(makeDue('unknown')).toBe(false)
})

test('the record of a failed attempt can be repeated', async () => {
  const { database, events, accept } = await tables()
  const id = accept('one')
  for (let i = 0; i < 2; i++) delay(events, id, hourMs)
  expect(database.prepare('SELECT attempts, completed FROM inbox_event').get()).toMatchObject({
    attempts: 1,
    completed: '["a"]',
  })
})

test('what is overdue is accepted in the order of its deadlines, a part at a time, and once', async () => {
  const { database, events, accept, expected } = await tables()
  accept('begin', beginning({ third: -1_000, first: -3_000, known: -4_000, second: -2_000, later: hourMs }))
  accept('known')
  const ids = [...events.acceptDue(2), ...events.acceptDue(1), ...events.acceptDue(10)]
  const keyOf = database.prepare("SELECT event ->> '$.key' AS key FROM inbox_event WHERE id = ?")
  expect(ids.map((id) => (keyOf.get(id) as { key: string }).key)).toEqual(['first', 'second', 'third'])
  expect(expected()).toEqual(['later'])
})

test('an end is remembered since it was last accepted, and not if a clock was ahead', async () => {
  const { database, accept, expected, cleanUp } = await tables()
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
  cleanUp.step()
  accept('begin', beginning(Object.fromEntries(rules.map((rule) => [rule, hourMs]))))
  expect(expected().toSorted()).toEqual(['ahead', 'old'])
})
