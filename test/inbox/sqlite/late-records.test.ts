import { expect, test } from 'vitest'
import { openInboxFile } from '../../../src/inbox/sqlite.ts'
import { eventOf, until } from '../../support/inbox.ts'
import { ownTime } from '../../support/own-time.ts'
import { freshPath, started } from './sqlite-tests.ts'
import { watched } from './watched.ts'

/** Opens an inbox, and counts its commits that reach the disk. */
async function counted() {
  const path = await freshPath()
  const { database, ran } = watched(path)
  const { inbox, calls } = started({ database })
  await until(async () => ran.includes('COMMIT'))
  const flushes = () => ran.filter((sql, index) => sql === 'COMMIT' && isFlushed(ran.slice(0, index))).length
  return { path, inbox, calls, flushes }
}

const isFlushed = (before: readonly string[]) =>
  before.findLast((sql) => sql.startsWith('PRAGMA main.synchronous')) !== 'PRAGMA main.synchronous = NORMAL'

test('the records of handled events are committed with the next deliveries', async () => {
  const { inbox, calls, flushes } = await counted()
  const before = flushes()
  for (let i = 0; i < 20; i++) {
    expect(await inbox.accept(eventOf(`key ${i}`))).toBe('accepted')
    ;(await calls.next()).finish()
  }
  // One for each delivery, and some for upkeep and for what was late.
  expect(flushes() - before).toBeLessThan(35)
  await until(async () => (await inbox.stats()).running === 0)
})

test('without another delivery, the record of a handled event is committed soon, also if the inbox closes', async () => {
  const { path, inbox, calls } = await counted()
  await inbox.accept(eventOf('one'))
  const elapsed = ownTime()
  ;(await calls.next()).finish()
  await until(async () => (await inbox.stats()).running === 0)
  expect(elapsed()).toBeLessThan(1_000)
  await inbox.accept(eventOf('two'))
  ;(await calls.next()).finish()
  expect(await inbox.close()).toEqual({ unfinished: [] })
  const file = openInboxFile(path)
  expect(file.stats()).toMatchObject({ waiting: 0, running: 0 })
  file.close()
})
