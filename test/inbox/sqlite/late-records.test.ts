import { beforeEach, expect, onTestFinished, test, vi } from 'vitest'
import type { CloseReport } from '../../../src/inbox/inbox.ts'
import { openInboxFile, type SqliteInboxOptions } from '../../../src/inbox/sqlite.ts'
import { nextTurn } from '../../../src/internal/timers.ts'
import { eventOf } from '../../support/inbox.ts'
import { freshPath, started } from './sqlite-tests.ts'
import { watched } from './watched.ts'

beforeEach(() => void vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] }))

/** Opens an inbox, and counts its commits from now on. */
async function counted(options: Omit<SqliteInboxOptions, 'path' | 'database'> = {}) {
  const path = await freshPath()
  const { database, count } = watched(path)
  const { inbox, calls } = started({ ...options, database })
  // Before the inbox is closed, which needs them.
  onTestFinished(() => void vi.useRealTimers())
  const opening = count('COMMIT')
  /** Accepts events, and ends their handlers. */
  const handle = async (...keys: readonly string[]) => {
    expect(await Promise.all(keys.map((key) => inbox.accept(eventOf(key, key))))).toEqual(keys.map(() => 'accepted'))
    for (let i = 0; i < keys.length; i++) (await calls.next()).finish()
    for (let turn = 0; turn < 3; turn++) await nextTurn()
  }
  return { path, inbox, calls, handle, commits: () => count('COMMIT') - opening }
}

test('the record of a handled event is committed with the next delivery', async () => {
  const { inbox, handle, commits } = await counted()
  await handle('one')
  expect([commits(), (await inbox.stats()).running]).toEqual([1, 1])
  await handle('two')
  expect([commits(), inbox.events?.get('one')]).toMatchObject([2, { state: 'handled' }])
})

test('without another delivery, it is committed within 20 ms', async () => {
  const { inbox, handle, commits } = await counted()
  await handle('one')
  vi.advanceTimersByTime(19)
  expect(commits()).toBe(1)
  vi.advanceTimersByTime(1)
  expect([commits(), inbox.events?.get('one')]).toMatchObject([2, { state: 'handled' }])
})

test('64 of them are committed immediately, since a crash repeats the handlers of those that wait', async () => {
  const keys = Array.from({ length: 64 }, (_, index) => `key ${index}`)
  const { handle, commits } = await counted({ concurrency: 100 })
  await handle(...keys.slice(1))
  expect(commits()).toBe(1)
  vi.advanceTimersByTime(20)
  expect(commits()).toBe(2)
  await handle(...keys.map((key) => `other ${key}`))
  expect(commits()).toBe(4)
})

test('an event whose record waits takes no room from those that wait to be handled', async () => {
  const { handle } = await counted({ maxWaiting: 1 })
  await handle('one')
  await handle('two')
})

/** Waits for an inbox to close, which polls its commits. */
async function closing(closed: Promise<CloseReport>) {
  let isClosed = false
  void closed.finally(() => {
    isClosed = true
  })
  for (let turn = 0; turn < 6 && !isClosed; turn++) {
    await nextTurn()
    await vi.advanceTimersByTimeAsync(3)
  }
  return closed
}

test('an inbox that closes commits them first', async () => {
  const { path, inbox, handle } = await counted()
  await handle('one')
  expect(await closing(inbox.close())).toEqual({ unfinished: [] })
  const file = openInboxFile(path)
  onTestFinished(() => file.close())
  expect([file.stats().waiting, file.events.get('one')]).toMatchObject([0, { state: 'handled' }])
})

test('the record of an event that is handled while its inbox closes does not wait', async () => {
  const { inbox, calls } = await counted()
  await inbox.accept(eventOf('one'))
  const call = await calls.next()
  const closed = inbox.close({ timeoutMs: 19 })
  await nextTurn()
  call.finish()
  expect(await closing(closed)).toEqual({ unfinished: [] })
})
