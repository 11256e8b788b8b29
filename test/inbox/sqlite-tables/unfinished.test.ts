import { expect, onTestFinished, test } from 'vitest'
import { openDatabase } from '../../../src/inbox/sqlite/driver.ts'
import { inTransaction } from '../../../src/inbox/sqlite-tables/database.ts'
import { makeTables } from '../../../src/inbox/sqlite-tables/schema.ts'
import { UnfinishedCount } from '../../../src/inbox/sqlite-tables/unfinished.ts'
import { freshPath } from '../sqlite/sqlite-tests.ts'

async function counted(events: number) {
  const database = openDatabase(await freshPath())
  onTestFinished(() => void database.close())
  makeTables(database)
  const insert = database.prepare("INSERT INTO inbox_event (id, event, received_at) VALUES (?, '', 0)")
  const store = (id: number) => void insert.run(id)
  inTransaction(database, () => {
    for (let id = 1; id <= events; id++) store(id)
  })
  const remove = (id: number) => void database.prepare('DELETE FROM inbox_event WHERE id = ?').run(id)
  return { database, store, remove, count: new UnfinishedCount(database, 2_000) }
}

test('events that are stored and end while others are counted are counted once', async () => {
  const { count, store, remove } = await counted(5_000)
  const counting = count.finish()
  expect(count.number).toBe(2_000)
  for (const id of [10, 4_990]) {
    remove(id)
    count.ended(id)
  }
  store(5_001)
  count.stored(5_001)
  await counting
  expect(count.number).toBe(4_999)
  store(5_002)
  count.stored(5_002)
  expect([count.finish(), count.number]).toEqual([undefined, 5_000])
})

test('a count that starts over while it is under way counts everything once', async () => {
  const { count, remove } = await counted(5_000)
  const counting = count.finish()
  for (let id = 1; id <= 100; id++) remove(id)
  count.startOver()
  expect(count.finish()).toBe(counting)
  await counting
  expect(count.number).toBe(4_900)
})

test('a count that fails goes on with the next call', async () => {
  const { count, database } = await counted(5_000)
  const counting = count.finish()
  database.exec('ALTER TABLE inbox_event RENAME TO gone')
  await expect(counting).rejects.toThrow('no such table')
  database.exec('ALTER TABLE gone RENAME TO inbox_event')
  await count.finish()
  expect(count.number).toBe(5_000)
})
