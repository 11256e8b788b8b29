import { describe, expect, test } from 'vitest'
import { openDatabase } from '../../../src/inbox/sqlite/driver.ts'
import type { SqliteInboxOptions } from '../../../src/inbox/sqlite.ts'
import { eventOf, until } from '../../support/inbox.ts'
import { seedWaiting } from './seed.ts'
import { crashed, freshPath, started } from './sqlite-tests.ts'
import { nothing, watched } from './watched.ts'

const keysTo = (count: number) => Array.from({ length: count }, (_, index) => `key ${index}`)

/** Makes a file in which so many events wait, those of ten media in turns. */
async function fileOf(count: number): Promise<string> {
  const path = await freshPath()
  await seedWaiting(
    path,
    keysTo(count).map((key, index) => ({ key, mediaId: `media ${index % 10}` })),
  )
  return path
}

/** Changes the file while no inbox has it open. */
function change(path: string, sql: string): void {
  const database = openDatabase(path)
  database.exec(sql)
  database.close()
}

/** Opens an inbox, and notes the keys of the events that it handles, in order. */
function handling(options: SqliteInboxOptions) {
  const subject = started(options)
  const handled: string[] = []
  const handleAll = async () => {
    for (;;) {
      const { event, finish } = await subject.calls.next()
      handled.push(event.key)
      finish()
    }
  }
  /** Handles events until so many have been handled, and some time longer. */
  const until = async (count: number) => {
    void handleAll().catch(() => {})
    await expect.poll(() => handled.length).toBe(count)
    await expect.poll(async () => await subject.inbox.stats()).toMatchObject({ waiting: 0, running: 0 })
    return handled
  }
  return { ...subject, handled, until }
}

const turn = () => new Promise((resolve) => setImmediate(resolve))

describe('a file in which many events wait', () => {
  test('is handled in order, and what is accepted meanwhile behind it', async () => {
    const { inbox, handled, until } = handling({ path: await fileOf(300) })
    const early = [0, 3, 9].map((media) => inbox.accept(eventOf(`early ${media}`, `media ${media}`)))
    expect(await Promise.all(early)).toEqual(['accepted', 'accepted', 'accepted'])
    await until(303)
    for (let media = 0; media < 10; media++) {
      const own = handled.filter((key) => Number(key.split(' ')[1]) % 10 === media)
      const expected = keysTo(300).filter((_, index) => index % 10 === media)
      if ([0, 3, 9].includes(media)) expected.push(`early ${media}`)
      expect(own).toEqual(expected)
    }
  })

  test('keeps no media item waiting behind the many events of another one', async () => {
    const path = await freshPath()
    const hot = keysTo(2_500).map((key) => ({ key, mediaId: 'hot' }))
    await seedWaiting(path, [...hot, { key: 'behind', mediaId: 'other' }])
    const { calls } = started({ path })
    expect([(await calls.next()).event.key, (await calls.next()).event.key]).toEqual(['key 0', 'behind'])
  })

  test('counts for the limit of waiting events before it is in memory', async () => {
    const few = started({ path: await fileOf(300), maxWaiting: 290 })
    expect(await few.inbox.accept(eventOf('new'))).toBe('overloaded')
    const many = started({ path: await fileOf(5_000), maxWaiting: 5_000, concurrency: 1 })
    await many.calls.next()
    expect(await many.inbox.accept(eventOf('new'))).toBe('accepted')
    expect(await many.inbox.accept(eventOf('newer'))).toBe('overloaded')
  })

  test('has retries that are not started any more while the inbox closes, and are reported once', async () => {
    const path = await fileOf(300)
    change(
      path,
      `UPDATE inbox_event SET due_at = ${Date.now() + 3_600_000}, delayed_at = ${Date.now()}, attempts = 1 WHERE id = 300`,
    )
    const { inbox, calls } = started({ path, concurrency: 1 })
    const running = await calls.next()
    const closed = inbox.close()
    await turn()
    // It is due now, for the next process.
    expect(await inbox.events?.retryNow('key 299')).toBe(true)
    running.finish()
    const { unfinished } = await closed
    expect(unfinished.filter(({ event }) => event.key === 'key 299')).toMatchObject([{ state: 'waiting' }])
    expect(calls.hasStarted).toBe(false)
  })

  test.each([0, 1, 3])('reports each event once when it is closed after %i turns, and loses none', async (turns) => {
    const path = await fileOf(5_000)
    const first = started({ path, concurrency: 1 })
    const accepted = turns === 3 ? [first.inbox.accept(eventOf('new', 'media 0'))] : []
    await Promise.all(accepted)
    for (let i = 0; i < turns; i++) await turn()
    const { unfinished } = await first.inbox.close({ timeoutMs: 0 })
    const keys = [...keysTo(5_000), ...accepted.map(() => 'new')]
    expect(unfinished.map(({ event }) => event.key).toSorted()).toEqual(keys.toSorted())
    const { until } = handling({ path })
    expect((await until(keys.length)).toSorted()).toEqual(keys.toSorted())
  })

  test('is handled completely after a crash in the middle', async () => {
    const path = await fileOf(300)
    const first = started({ path })
    expect(await first.inbox.accept(eventOf('new', 'media 0'))).toBe('accepted')
    const { until } = handling({ path: await crashed(path) })
    const handled = await until(301)
    expect(handled.indexOf('new')).toBeGreaterThan(handled.indexOf('key 290'))
    expect(new Set(handled).size).toBe(301)
  })
})

test('an event that cannot be read becomes a dead letter, and the others are handled', async () => {
  const path = await fileOf(300)
  change(path, "UPDATE inbox_event SET event = '{' WHERE id = 200")
  const { inbox, logged, until } = handling({ path })
  expect((await until(299)).toSorted()).toEqual(keysTo(300).toSpliced(199, 1).toSorted())
  const message = 'an event became a dead letter: its stored event is damaged'
  expect(logged).toMatchObject([{ message, details: { id: 200, err: expect.any(SyntaxError) } }])
  expect(await inbox.stats()).toMatchObject({ waiting: 0, deadLetters: 1 })
})

test('while the file cannot be read nothing overtakes the events that wait in it', async () => {
  const path = await fileOf(300)
  const { database, failing } = watched(path)
  const { inbox, lines, handled, until: handledAll } = handling({ database, concurrency: 100 })
  await turn()
  failing.sql = /^SELECT \* FROM \(SELECT id, event/
  expect(await inbox.accept(eventOf('new', 'media 9'))).toBe('accepted')
  await until(async () => lines.includes('the inbox could not claim events'))
  expect(await inbox.stats()).toMatchObject({ waiting: 301, running: 0 })
  failing.sql = nothing
  await handledAll(301)
  expect(handled.filter((key) => key.endsWith('9')).length).toBe(30)
  expect(handled.indexOf('new')).toBeGreaterThan(handled.indexOf('key 299'))
})
