import { describe, expect, onTestFinished, test } from 'vitest'
import { inTransaction } from '../../../src/inbox/sqlite/connection.ts'
import { openDatabase } from '../../../src/inbox/sqlite/driver.ts'
import { Expiration } from '../../../src/inbox/sqlite/expiration.ts'
import { hashKey } from '../../../src/inbox/sqlite/hash.ts'
import { eventOf, until } from '../../support/inbox.ts'
import { freshPath, started } from './sqlite-tests.ts'

function ask(path: string, question: string, ...parameters: string[]): number {
  const database = openDatabase(path)
  const { answer } = database.prepare(question).get(...parameters) as { answer: number }
  database.close()
  return answer
}

const keysIn = (path: string) => ask(path, 'SELECT count(*) AS answer FROM inbox_event')
const isKnown = (path: string, key: string) =>
  ask(path, 'SELECT count(*) AS answer FROM inbox_event WHERE hash = ?', hashKey(key)) === 1

const dead = { status: 'dead', completed: [], failures: [{ handler: 'a', message: 'Error: no' }] } as const

/** Opens an inbox with an event that runs and a dead letter, whose keys are the oldest, and have expired. */
async function withOldEvents() {
  const path = await freshPath()
  const { inbox, calls } = started({ path, ttlMs: 200 })
  await inbox.accept(eventOf('running'))
  const running = await calls.next()
  await inbox.accept(eventOf('dead'))
  ;(await calls.next()).finish(dead)
  await until(async () => (await inbox.stats()).deadLetters === 1)
  await inbox.accept(eventOf('later'))
  ;(await calls.next()).finish()
  // It is the youngest, so the others would be forgotten by now.
  await until(async () => !isKnown(path, 'later'))
  return { inbox, calls, running }
}

describe('an expired key', () => {
  test('is remembered as long as its event is a dead letter', async () => {
    const { inbox } = await withOldEvents()
    expect(await inbox.accept(eventOf('dead'))).toBe('duplicate')
    expect(await inbox.deadLetters.get('dead')).toMatchObject({ key: 'dead' })
  })

  test('is remembered as long as its event has not ended, and when that becomes a dead letter', async () => {
    const { inbox, running } = await withOldEvents()
    running.finish(dead)
    await until(async () => (await inbox.stats()).deadLetters === 2)
    expect(await inbox.accept(eventOf('running'))).toBe('duplicate')
  })

  test('is remembered with the outcome of a late replay, until that has expired too', async () => {
    const path = await freshPath()
    const { inbox, calls } = started({ path })
    await inbox.accept(eventOf('replayed'))
    ;(await calls.next()).finish(dead)
    await until(async () => (await inbox.stats()).deadLetters === 1)
    const database = openDatabase(path)
    onTestFinished(() => void database.close())
    database.exec('UPDATE inbox_event SET received_at = received_at - 200000000')
    await inbox.deadLetters.replay('replayed')
    ;(await calls.next()).finish()
    await until(async () => (await inbox.stats()).running === 0)
    const cleanUp = () => new Expiration(database, 86_400_000).next()
    inTransaction(database, cleanUp)
    expect(await inbox.accept(eventOf('replayed'))).toBe('duplicate')
    expect(await inbox.events?.get('replayed')).toMatchObject({ state: 'handled' })
    database.exec('UPDATE inbox_event SET ended_at = ended_at - 90000000')
    inTransaction(database, cleanUp)
    expect(keysIn(path)).toBe(0)
  })

  test('is not looked for among those of one slice only, and is forgotten once its event has ended', async () => {
    const path = await freshPath()
    const { inbox, calls } = started({ path, ttlMs: 200 })
    const ofOneMedia = Array.from({ length: 260 }, (_, i) => eventOf(`waiting ${i}`, 'media'))
    await Promise.all(ofOneMedia.map((accepted) => inbox.accept(accepted)))
    const running = await calls.next()
    for (const key of ['one', 'two', 'three']) {
      await inbox.accept(eventOf(key))
      ;(await calls.next()).finish()
    }
    await until(async () => keysIn(path) === 260)
    running.finish()
    calls.finishAll()
    await until(async () => keysIn(path) === 0)
  })
})

/** Opens the file of a closed inbox with 600 keys, whose events ended so many ms ago. */
async function withKeys(ageMs: number) {
  const path = await freshPath()
  await started({ path }).inbox.close()
  const database = openDatabase(path)
  onTestFinished(() => void database.close())
  const insert = database.prepare('INSERT INTO inbox_event (hash, media, received_at, ended_at) VALUES (?, ?, ?, ?)')
  const lane = database.prepare('INSERT INTO inbox_lane (media, hash) VALUES (?, ?)')
  const at = Date.now() - ageMs
  inTransaction(database, () => {
    for (let i = 0; i < 600; i++) {
      insert.run(`${i}`, i, at, at)
      lane.run(i, i)
    }
  })
  const expiration = new Expiration(database, 3_600_000)
  const lanes = () => (database.prepare('SELECT count(*) AS lanes FROM inbox_lane').get() as { lanes: number }).lanes
  const page = () => [expiration.next().nextInMs < 100, keysIn(path), lanes()]
  return Object.assign(page, { database })
}

describe('a clean-up', () => {
  test.each([
    ['that have expired', 3_900_000],
    ['of a time to come, since a clock was ahead', -3_900_000],
  ])('removes keys %s and their lanes, 250 at a time', async (_, ageMs) => {
    const page = await withKeys(ageMs)
    expect(page()).toEqual([true, 350, 350])
    expect(page()).toEqual([true, 100, 100])
    expect(page()).toEqual([false, 0, 0])
  })

  test('begins with the oldest keys again, which expire first', async () => {
    const page = await withKeys(0)
    expect(page()).toEqual([false, 600, 600])
    page.database.exec('UPDATE inbox_event SET received_at = 0, ended_at = 0 WHERE id <= 100')
    expect(page()).toEqual([true, 500, 500])
  })

  test.each([3_300_000, -3_300_000])(
    'does not look further than the first 250 keys if they stay: %i ms old',
    async (ageMs) => {
      const page = await withKeys(ageMs)
      expect(page()).toEqual([false, 600, 600])
      expect(page()).toEqual([false, 600, 600])
    },
  )

  test('removes a lane whose last event went while somebody had it', async () => {
    const page = await withKeys(3_900_000)
    page.database.exec("UPDATE inbox_lane SET owner = 'somebody' WHERE media < 10")
    for (let pages = 0; pages < 3; pages++) page()
    expect(page().at(-1)).toBe(10)
    page.database.exec('UPDATE inbox_lane SET owner = NULL')
    expect([page().at(-1), page().at(-1)]).toContain(0)
  })
})

test('1,000 unreadable deliveries are kept, the newest, beside the dead letters that are events', async () => {
  const { inbox, calls, lines } = started({ path: await freshPath(), maxDeadLetters: 1 })
  const receivedAt = new Date()
  const keep = (n: number) => {
    const body = new TextEncoder().encode(`body ${n}`)
    return inbox.keepUnreadable?.({ reason: `reason ${n}`, receivedAt, eventId: undefined, body })
  }
  await keep(0)
  await inbox.accept(eventOf('dead'))
  ;(await calls.next()).finish(dead)
  await until(async () => (await inbox.stats()).deadLetters === 2)
  await Promise.all(Array.from({ length: 1_254 }, (_, i) => keep(i + 1)))
  await until(async () => (await inbox.stats()).deadLetters === 1_001)
  const kept = await inbox.deadLetters.list({ limit: 2_000 })
  const reasons = kept.flatMap(({ unreadable }) => unreadable?.reason ?? [])
  expect(reasons).toEqual(Array.from({ length: 1_000 }, (_, i) => `reason ${1_254 - i}`))
  expect(kept.at(-1)).toMatchObject({ key: 'dead' })
  expect(lines.filter((line) => line === 'a dead letter was dropped to make room for a newer one')).toHaveLength(255)
})

test('a dead letter is not replayed into a full inbox, and stays', async () => {
  const { inbox, calls } = started({ path: await freshPath(), maxWaiting: 1, concurrency: 1 })
  await inbox.accept(eventOf('dead'))
  ;(await calls.next()).finish(dead)
  await until(async () => (await inbox.stats()).deadLetters === 1)
  await inbox.accept(eventOf('running'))
  const running = await calls.next()
  await inbox.accept(eventOf('waiting'))
  await expect(inbox.deadLetters.replay('dead')).rejects.toMatchObject({ name: 'WebhookError', code: 'overloaded' })
  expect(await inbox.stats()).toMatchObject({ waiting: 1, running: 1, retrying: 0, deadLetters: 1 })
  running.finish()
  ;(await calls.next()).finish()
  await until(async () => (await inbox.stats()).running === 0)
  expect(await inbox.deadLetters.replay('dead')).toBe(true)
  expect((await calls.next()).event.key).toBe('dead')
})
