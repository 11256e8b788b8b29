import { hostname } from 'node:os'
import { describe, expect, onTestFinished, test, vi } from 'vitest'
import type { EventQuery, EventRecord, InboxEvents } from '../../../src/inbox/reading.ts'
import { openDatabase } from '../../../src/inbox/sqlite/driver.ts'
import { openInboxFile } from '../../../src/inbox/sqlite.ts'
import { eventOf, until } from '../../support/inbox.ts'
import { countingRows, seedHandled } from './seed.ts'
import { freshPath, started } from './sqlite-tests.ts'

const dead = { status: 'dead', completed: [], failures: [{ handler: 'a', message: 'Error: no' }] } as const
const later = { ...dead, status: 'retry', delayMs: 3_600_000 } as const

const keysOf = (records: readonly EventRecord[]) => records.map(({ key }) => key)

/** Follows the cursors, and returns the keys of each page. */
async function pages(events: InboxEvents, query: EventQuery): Promise<string[][]> {
  const all: string[][] = []
  let cursor: string | undefined
  do {
    const page = await events.list(cursor === undefined ? query : { ...query, cursor })
    all.push(keysOf(page.events))
    cursor = page.cursor
  } while (cursor !== undefined)
  return all
}

test('an open inbox says in which process an event runs, and since when', async () => {
  const { inbox, calls } = started({ path: await freshPath() })
  await inbox.accept(eventOf('one'))
  await calls.next()
  const named = { state: 'running', process: `${hostname()}:${process.pid}`, startedAt: expect.any(Date) }
  expect(await inbox.events?.get('one')).toMatchObject(named)
  expect((await inbox.events?.list({ state: 'running' }))?.events).toMatchObject([named])
})

describe('a file with 100,000 handled events', () => {
  const count = 100_000

  /**
   * Opens an inbox over it, in which every 1,000th event is of one media item, and the first one of a type of its own.
   */
  async function opened() {
    const path = await freshPath()
    await seedHandled(path, count, (index) => ({
      ...(index % 1_000 === 0 && { mediaId: 'wanted' }),
      ...(index === 0 && { type: 'rare' }),
    }))
    const { database, take, stop } = countingRows(openDatabase(path))
    onTestFinished(() => {
      stop()
      database.close()
    })
    const { inbox } = started({ database })
    return { inbox, events: inbox.events as InboxEvents, take }
  }

  test('is read in slices of 100 rows, one in a turn of the event loop, and 20,000 rows for a page at most', async () => {
    const { events, take } = await opened()
    const first = await events.list({ limit: 250 })
    expect(keysOf(first.events)).toEqual(Array.from({ length: 250 }, (_, i) => `key ${count - 1 - i}`))
    expect(take()).toEqual([16, 64, 100, 100])
    const page = await events.list({ type: 'rare' })
    expect(page.events).toEqual([])
    expect(page.cursor).toBeDefined()
    const rows = take()
    expect([rows.length, Math.max(...rows)]).toEqual([200, 100])
    expect((await pages(events, { type: 'rare' })).flat()).toEqual(['key 0'])
    expect(await pages(events, { type: 'rare', order: 'oldest', limit: 1 })).toContainEqual(['key 0'])
  })

  test('has the events of a media item found without reading the others', async () => {
    const { inbox, events, take } = await opened()
    const ofMedia = Array.from({ length: 100 }, (_, i) => `key ${i * 1_000}`)
    expect(keysOf((await inbox.history?.('wanted')) ?? [])).toEqual(ofMedia)
    expect(take().reduce((sum, rows) => sum + rows, 0)).toBe(100)
    expect((await pages(events, { mediaId: 'wanted', limit: 30 })).flat()).toEqual(ofMedia.toReversed())
    expect((await pages(events, { mediaId: 'wanted', limit: 30, order: 'oldest' })).flat()).toEqual(ofMedia)
    expect((await events.list({ mediaId: 'wanted', type: 'rare' })).events).toHaveLength(1)
    expect(await inbox.history?.('media of key 77777')).toMatchObject([{ key: 'key 77777', state: 'handled' }])
  })
})

test('the file has no payload of a handled event any more', async () => {
  const path = await freshPath()
  const { inbox, calls } = started({ path })
  await inbox.accept(eventOf('one'))
  ;(await calls.next()).finish()
  await until(async () => (await inbox.events?.get('one'))?.state === 'handled')
  await inbox.close()
  const database = openDatabase(path)
  const row = JSON.stringify(database.prepare('SELECT * FROM inbox_event').get())
  database.close()
  expect(row).toContain('media of one')
  expect(row).not.toMatch(/映画|360p/)
})

test('the outcome of an event is forgotten with its key, after ttlMs', async () => {
  vi.useFakeTimers({ toFake: ['Date'] })
  onTestFinished(() => void vi.useRealTimers())
  const { inbox, calls } = started({ path: await freshPath(), ttlMs: 60_000 })
  await inbox.accept(eventOf('handled', 'media'))
  ;(await calls.next()).finish()
  await inbox.accept(eventOf('dead', 'media'))
  ;(await calls.next()).finish(dead)
  await until(async () => (await inbox.events?.get('dead'))?.state === 'dead')
  expect(keysOf((await inbox.history?.('media')) ?? [])).toEqual(['handled', 'dead'])
  vi.setSystemTime(Date.now() + 60_001)
  await until(async () => (await inbox.events?.get('handled')) === undefined)
  expect(keysOf((await inbox.history?.('media')) ?? [])).toEqual(['dead'])
  expect(keysOf((await inbox.events?.list())?.events ?? [])).toEqual(['dead'])
})

test('the outcome of events is known to the next process, and to one that reads the file', async () => {
  const path = await freshPath()
  const { inbox, calls } = started({ path })
  for (const [key, result] of [
    ['handled', undefined],
    ['dead', dead],
    ['retrying', later],
  ] as const) {
    await inbox.accept({ ...eventOf(key, 'media'), trace: { traceparent: key } })
    ;(await calls.next()).finish(result)
    const state = key as EventRecord['state']
    await until(async () => (await inbox.events?.get(key))?.state === state)
  }
  const before = await inbox.history?.('media')
  await inbox.close()
  const file = openInboxFile(path)
  onTestFinished(() => file.close())
  const { inbox: next } = started({ path })
  const [handled, died, retrying] = (await next.history?.('media')) ?? []
  expect([handled, died]).toEqual(before?.slice(0, 2))
  expect({ ...retrying, dueAt: 0 }).toEqual({ ...before?.[2], dueAt: 0 })
  expect(Math.abs(Number(retrying?.dueAt) - Number(before?.[2]?.dueAt))).toBeLessThan(10_000)
  expect([died?.trace, retrying?.trace]).toEqual([{ traceparent: 'dead' }, { traceparent: 'retrying' }])
  const inFile = await file.history('media')
  expect(inFile.slice(0, 2)).toEqual([handled, died])
  expect({ ...inFile[2], dueAt: 0 }).toEqual({ ...retrying, dueAt: 0 })
  for (const state of file.events.states.filter((each) => each !== 'waiting'))
    expect(keysOf((await file.events.list({ state })).events)).toEqual([state])
})

test('an event that runs is running for its own process, and waiting for one that reads the file', async () => {
  const path = await freshPath()
  const { inbox, calls } = started({ path })
  await inbox.accept(eventOf('one'))
  await calls.next()
  expect((await inbox.events?.list({ state: 'running' }))?.events).toMatchObject([{ key: 'one', attempts: 1 }])
  expect((await inbox.events?.list())?.events).toMatchObject([{ key: 'one', state: 'running' }])
  const file = openInboxFile(path)
  onTestFinished(() => file.close())
  expect((await file.events.list({ state: 'waiting' })).events).toMatchObject([{ key: 'one', attempts: 0 }])
  expect(file.events.states).not.toContain('running')
  expect((await file.events.list({ state: 'running' })).events).toEqual([])
})

test('a closed inbox and a closed file cannot be asked', async () => {
  const path = await freshPath()
  const { inbox } = started({ path })
  const events = inbox.events as InboxEvents
  const file = openInboxFile(path)
  await inbox.close()
  file.close()
  const closing = expect.objectContaining({ code: 'closing' })
  for (const each of [events, file.events]) {
    await expect(Promise.resolve(each.list())).rejects.toEqual(closing)
    expect(() => each.get('one')).toThrow(closing)
    await expect(async () => each.retryNow('one')).rejects.toEqual(closing)
  }
  await expect(Promise.resolve(events.list({ state: 'running' }))).rejects.toEqual(closing)
  await expect(Promise.resolve(inbox.activity?.(new Date()))).rejects.toEqual(closing)
  await expect(file.activity(new Date())).rejects.toEqual(closing)
})

test('dead letters are listed in slices of 100 rows, one in a turn of the event loop', async () => {
  const { inbox, calls } = started({ path: await freshPath() })
  for (let index = 0; index < 250; index++) {
    await inbox.accept(eventOf(`${index}`))
    ;(await calls.next()).finish(dead)
  }
  await until(async () => (await inbox.stats()).deadLetters === 250)
  let turns = 0
  const count = () => {
    turns++
    counting = setImmediate(count)
  }
  let counting = setImmediate(count)
  const page = await inbox.deadLetters.list({ limit: 240, offset: 5 })
  clearImmediate(counting)
  expect(page.map(({ key }) => key)).toEqual(
    (await inbox.deadLetters.list({ limit: 245 })).slice(5).map(({ key }) => key),
  )
  expect(new Set(page.map(({ key }) => key)).size).toBe(240)
  expect(turns).toBeGreaterThanOrEqual(2)
})
