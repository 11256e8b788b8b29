import { expect, onTestFinished, test } from 'vitest'
import { openDatabase } from '../../../src/inbox/sqlite/driver.ts'
import { SqliteEventBatch } from '../../../src/inbox/sqlite/event-batch.ts'
import { makeTables } from '../../../src/inbox/sqlite-tables/schema.ts'
import { eventOf, until } from '../../support/inbox.ts'
import { freshPath, started } from './sqlite-tests.ts'

test('a commit of many deliveries accepts each event once, in their order, and knows those of earlier commits', async () => {
  const { inbox, calls } = started({ path: await freshPath(), concurrency: 1_000 })
  const accept = (keys: readonly string[]) =>
    Promise.all(keys.map((key) => inbox.accept(eventOf(key, `media of ${key}`))))
  await accept(['key 3', 'key 70', 'key 149'])
  for (let i = 0; i < 3; i++) (await calls.next()).finish()
  await until(async () => (await inbox.events?.get('key 149'))?.state === 'handled')
  const keys = Array.from({ length: 150 }, (_, index) => `key ${index}`)
  // Two of them arrive twice: within one statement, and far apart.
  const sent = [...keys.slice(0, 10), 'key 9', ...keys.slice(10), 'key 0']
  const seen = new Set(['key 3', 'key 70', 'key 149'])
  const expected = sent.map((key) => {
    const isNew = !seen.has(key)
    seen.add(key)
    return isNew ? 'accepted' : 'duplicate'
  })
  expect(await accept(sent)).toEqual(expected)
  for (let i = 0; i < 147; i++) (await calls.next()).finish()
  await until(async () => (await inbox.stats()).running === 0)
  const { events = [] } = (await inbox.events?.list({ order: 'oldest', limit: 1_000 })) ?? {}
  const inOrder = ['key 3', 'key 70', 'key 149', ...keys.filter((key) => !['key 3', 'key 70', 'key 149'].includes(key))]
  expect(events.map(({ key, mediaId, state }) => [key, mediaId, state])).toEqual(
    inOrder.map((key) => [key, `media of ${key}`, 'handled']),
  )
})

async function batch() {
  const database = openDatabase(await freshPath())
  onTestFinished(() => void database.close())
  makeTables(database)
  const batch = new SqliteEventBatch(database, (key) => key)
  const accepting = { ...batch.write(eventOf('one')), id: undefined }
  batch.acceptLater(accepting)
  batch.flush()
  const idsLeft = () => (database.prepare('SELECT id FROM inbox_event').all() as { id: number }[]).map(({ id }) => id)
  return { database, batch, id: Number(accepting.id), idsLeft }
}

test('an event ends behind what its handlers write in the same transaction', async () => {
  const { batch: events, id } = await batch()
  events.begin()
  events.handled(id, '[]')
  events.completeOnce(id, 'a')
  expect(events.completed(id)).toEqual(['a'])
  events.flush()
  expect(events.completed(id)).toBe(undefined)
})

test('what a transaction had to write that was undone is forgotten', async () => {
  const { batch: events, id, idsLeft } = await batch()
  events.begin()
  events.handled(id, '[]')
  events.acceptLater(events.write(eventOf('two')))
  events.begin()
  events.flush()
  expect(idsLeft()).toEqual([id])
})

test('an event that another one has made known after its own transaction was undone is a duplicate', async () => {
  const { database, batch: events } = await batch()
  const [written, other] = [events.write(eventOf('two')), events.write(eventOf('two'))]
  const store = (event: typeof written, end: 'COMMIT' | 'ROLLBACK') => {
    database.exec('BEGIN')
    events.begin()
    events.acceptLater(event)
    events.flush()
    database.exec(end)
    return event.id
  }
  expect(store(written, 'ROLLBACK')).toBe(2)
  expect(store(other, 'COMMIT')).toBe(2)
  expect(store(written, 'COMMIT')).toBe(undefined)
})

test('a known event is a duplicate, whatever the same transaction has written before', async () => {
  const { batch: events, id, idsLeft } = await batch()
  events.begin()
  events.acceptLater(events.write(eventOf('two')))
  events.flush()
  events.begin()
  events.handled(id, '[]')
  const duplicate = events.write(eventOf('two'))
  events.acceptLater(duplicate)
  events.flush()
  expect(duplicate.id).toBe(undefined)
  expect(idsLeft()).toEqual([2])
})
