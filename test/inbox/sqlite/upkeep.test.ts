import { setImmediate as nextTurn, setTimeout as pause } from 'node:timers/promises'
import { describe, expect, test } from 'vitest'
import { openDatabase } from '../../../src/inbox/sqlite/driver.ts'
import { openInboxFile } from '../../../src/inbox/sqlite.ts'
import { eventOf, until } from '../../support/inbox.ts'
import { freshPath, started } from './sqlite-tests.ts'
import { nothing, watched } from './watched.ts'

const diskError = expect.objectContaining({ message: 'disk I/O error' })
const readsEvents = 'SELECT media, turn, position, crashes'

describe('an inbox at rest', () => {
  test('reads its events only when another process has changed the file', async () => {
    const path = await freshPath()
    const { database, ran, count } = watched(path)
    const { inbox, calls } = started({ database })
    await inbox.accept(eventOf('dead'))
    ;(await calls.next()).finish({ status: 'dead', completed: [], failures: [] })
    await until(async () => (await inbox.stats()).deadLetters === 1)
    // The test waits for the clean-up after the dead letter.
    ran.length = 0
    await until(async () => count('DELETE FROM inbox_expectation_end') > 1)
    ran.length = 0
    await pause(900)
    expect(count(readsEvents)).toBe(0)
    expect(count('DELETE FROM inbox_expectation_end')).toBeGreaterThan(0)
    expect(count('PRAGMA data_version')).toBeGreaterThan(1)
    const file = openInboxFile(path)
    await file.deadLetters.replay('dead')
    file.close()
    expect((await calls.next()).event.key).toBe('dead')
    expect(count(readsEvents)).toBeGreaterThan(0)
  })

  test('checks a file again that it could not read, although it has not changed', async () => {
    const { database, failing, ran, count } = watched(await freshPath())
    const { logged } = started({ database })
    await until(async () => count(readsEvents) > 0)
    await nextTurn()
    failing.sql = /^PRAGMA data_version/
    await until(async () => logged.length > 0)
    expect(logged[0]).toEqual({ message: 'the inbox could not read its file', details: { err: diskError } })
    failing.sql = nothing
    ran.length = 0
    await until(async () => count(readsEvents) > 0)
  })
})

test('an inbox that could not clean up its file says so, and does not try again immediately', async () => {
  const { database, failing, count } = watched(await freshPath())
  const { logged } = started({ database })
  failing.sql = /^DELETE FROM inbox_expectation_end/
  await until(async () => logged.length > 0)
  expect(logged).toEqual([{ message: 'the inbox could not do its background work', details: { err: diskError } }])
  await pause(800)
  expect(count('DELETE FROM inbox_expectation_end')).toBe(1)
})

describe('a closed inbox', () => {
  test('leaves its file alone, and logs nothing', async () => {
    const { database, ran } = watched(await freshPath())
    const { inbox, lines } = started({ database })
    await inbox.close()
    ran.length = 0
    await pause(900)
    expect([ran, lines]).toEqual([[], []])
  })

  test('says so for every call', async () => {
    const { inbox } = started({ path: await freshPath() })
    const closed = expect.objectContaining({ name: 'WebhookError', code: 'closing' })
    await inbox.close()
    const { deadLetters } = inbox
    const unreadable = { reason: 'no', receivedAt: new Date(), eventId: undefined, body: new Uint8Array(1) }
    const asking = [
      () => inbox.accept(eventOf('one')),
      () => inbox.keepUnreadable?.(unreadable),
      () => inbox.stats(),
      () => deadLetters.list(),
      () => deadLetters.get('one'),
      () => deadLetters.replay('one'),
      () => deadLetters.discard('one'),
    ]
    for (const ask of asking) await expect((async () => ask())()).rejects.toEqual(closed)
  })
})

describe('a commit', () => {
  test('takes place in the first turns of the event loop after the event arrives', async () => {
    const { inbox } = started({ path: await freshPath() })
    let acceptance: unknown
    void Promise.resolve(inbox.accept(eventOf('one'))).then((result) => {
      acceptance = result
    })
    for (let turns = 0; turns < 3; turns++) await new Promise((resolve) => setImmediate(resolve))
    expect(acceptance).toBe('accepted')
  })

  test('is tried every few ms while another process holds the lock, and not all the time', async () => {
    const path = await freshPath()
    const { database, ran, count } = watched(path)
    const { inbox } = started({ database })
    const other = openDatabase(path)
    other.exec('BEGIN IMMEDIATE')
    ran.length = 0
    const accepted = inbox.accept(eventOf('one'))
    await pause(300)
    other.exec('COMMIT')
    other.close()
    expect(await accepted).toBe('accepted')
    expect(count('BEGIN')).toBeGreaterThan(2)
    expect(count('BEGIN')).toBeLessThan(150)
  })
})

test('dead letters beyond a limit that was lowered are dropped when the file is opened', async () => {
  const path = await freshPath()
  const first = started({ path })
  for (const key of ['1', '2', '3']) {
    await first.inbox.accept(eventOf(key))
    ;(await first.calls.next()).finish({ status: 'dead', completed: [], failures: [] })
  }
  await until(async () => (await first.inbox.stats()).deadLetters === 3)
  await first.inbox.close()
  const { inbox, logged } = started({ path, maxDeadLetters: 1 })
  await until(async () => (await inbox.stats()).deadLetters === 1)
  const dropped = 'a dead letter was dropped to make room for a newer one'
  await until(async () => logged.length === 2)
  expect(logged.map(({ details }) => details)).toEqual([{ key: '2' }, { key: '1' }])
  expect(new Set(logged.map(({ message }) => message))).toEqual(new Set([dropped]))
  expect((await inbox.deadLetters.list()).map(({ key }) => key)).toEqual(['3'])
})
