import { afterEach, describe, expect, onTestFinished, test, vi } from 'vitest'
import type { ExpectationChanges } from '../../../src/inbox/inbox.ts'
import { openDatabase } from '../../../src/inbox/sqlite/driver.ts'
import { expectations, expire } from '../../../src/inbox/sqlite/statements.ts'
import { openInboxFile } from '../../../src/inbox/sqlite.ts'
import { eventOf, until } from '../../support/inbox.ts'
import { ownTime } from '../../support/own-time.ts'
import { freshPath, started } from './sqlite-tests.ts'
import { watched } from './watched.ts'

type Started = ReturnType<typeof started>

const noon = Date.parse('2026-03-01T12:00:00Z')
const hourMs = 3_600_000

interface Begin {
  readonly mediaId?: string
  readonly dueAt?: Date
}

/** Accepts an event that begins an expectation, and handles it. */
async function begin(subject: Started, key: string, options: Begin = {}) {
  const { mediaId = 'media', dueAt = new Date(Date.now() + hourMs) } = options
  const { event } = eventOf(`overdue:rule:${key}`, mediaId)
  const overdue = { event, receivedAt: dueAt, trace: { traceparent: key } }
  await acceptWith(subject, key, mediaId, { at: new Date(noon), begins: [{ rule: 'rule', dueAt, overdue }], ends: [] })
  return overdue
}

const end = (subject: Started, key: string) =>
  acceptWith(subject, key, 'media', { at: new Date(noon), begins: [], ends: ['rule'] })

async function acceptWith(
  { inbox, calls, changes }: Started,
  key: string,
  mediaId: string,
  effect: ExpectationChanges,
) {
  changes.set(key, effect)
  expect(await inbox.accept(eventOf(key, mediaId))).toBe('accepted')
  ;(await calls.next()).finish()
  await until(async () => (await inbox.events?.get(key))?.state === 'handled')
}

/** Moves the clock, and lets timers be. */
function later(ms: number): void {
  vi.useFakeTimers({ toFake: ['Date'], now: Date.now() + ms })
}

afterEach(() => void vi.useRealTimers())

describe('an expectation', () => {
  test('whose deadline passes while no process has the file open is handed over to the next one, once', async () => {
    const path = await freshPath()
    const first = started({ path })
    const overdue = await begin(first, 'one')
    await first.inbox.close()
    later(hourMs)
    const second = started({ path })
    const call = await second.calls.next()
    expect([call.event, call.receivedAt, call.trace]).toEqual([overdue.event, overdue.receivedAt, overdue.trace])
    expect(await second.inbox.expected?.()).toEqual([])
    call.finish()
    await until(async () => (await second.inbox.events?.get(overdue.event.key))?.state === 'handled')
    await second.inbox.close()
    const third = started({ path })
    await third.inbox.accept(eventOf('next', 'media'))
    expect((await third.calls.next()).event.key).toBe('next')
    expect(await third.inbox.accept(overdue)).toBe('duplicate')
  })

  test('that was handed over, and not handled, is handled by the next process', async () => {
    const path = await freshPath()
    const first = started({ path })
    const { event } = await begin(first, 'one', { dueAt: new Date() })
    expect((await first.calls.next()).event.key).toBe(event.key)
    await first.inbox.close({ timeoutMs: 0 })
    const second = started({ path })
    expect((await second.calls.next()).event).toEqual(event)
    expect(await second.inbox.history?.('media')).toMatchObject([{ key: 'one' }, { key: event.key, attempts: 1 }])
  })

  test('is waited for by the next process', async () => {
    const path = await freshPath()
    const first = started({ path })
    const overdue = await begin(first, 'one', { dueAt: new Date(Date.now() + 400) })
    await begin(first, 'two')
    await first.inbox.close()
    const { inbox, calls } = started({ path })
    expect((await calls.next()).event).toEqual(overdue.event)
    expect(Date.now()).toBeGreaterThanOrEqual(overdue.receivedAt.getTime())
    expect(await inbox.stats()).toMatchObject({ expected: 1 })
  })

  test('that a clock which was a day ahead began is reported in its time, counted from the correction', async () => {
    const path = await freshPath()
    later(24 * hourMs)
    const first = started({ path })
    const overdue = await begin(first, 'one', { dueAt: new Date(Date.now() + 400) })
    await first.inbox.close()
    vi.useRealTimers()
    const { calls } = started({ path })
    const elapsed = ownTime()
    expect((await calls.next()).event).toEqual(overdue.event)
    expect(elapsed()).toBeLessThan(2_000)
  })

  test('does not begin if its end was accepted before, by an earlier process', async () => {
    const path = await freshPath()
    const first = started({ path })
    await end(first, 'end')
    await first.inbox.close()
    const second = started({ path })
    await begin(second, 'one')
    expect(await second.inbox.expected?.()).toEqual([])
  })

  test('begins although an end was accepted before, once that is forgotten', async () => {
    const subject = started({ path: await freshPath(), ttlMs: 60_000 })
    await end(subject, 'end')
    later(60_001)
    await until(async () => (await subject.inbox.events?.get('end')) === undefined)
    await begin(subject, 'one')
    expect(await subject.inbox.stats()).toMatchObject({ expected: 1 })
  })
})

test('what is overdue leaves half of the room for deliveries', async () => {
  const path = await freshPath()
  const first = started({ path })
  for (let index = 0; index < 20; index++) await begin(first, `key ${index}`, { mediaId: `media ${index}` })
  await first.inbox.close()
  later(hourMs)
  const { inbox, calls } = started({ path, maxWaiting: 10, concurrency: 1 })
  const running = await calls.next()
  await until(async () => (await inbox.stats()).waiting === 5)
  expect(await inbox.stats()).toMatchObject({ waiting: 5, running: 1, expected: 14 })
  expect(await inbox.accept(eventOf('delivered'))).toBe('accepted')
  running.finish()
  for (let index = 0; index < 20; index++) (await calls.next()).finish()
  await until(async () => (await inbox.stats()).waiting === 0)
  expect(await inbox.stats()).not.toHaveProperty('expected')
})

test('a failure to hand over what is overdue is logged, and it is handed over later', async () => {
  const { database, failing } = watched(await freshPath())
  onTestFinished(() => void database.close())
  const subject = started({ database })
  const { event } = await begin(subject, 'one', { dueAt: new Date(Date.now() + 300) })
  failing.sql = /^DELETE FROM inbox_expectation WHERE hash/
  await until(async () => subject.lines.includes('the inbox could not do its background work'))
  failing.sql = /(?!)/
  expect((await subject.calls.next()).event).toEqual(event)
})

test('the file tells what is expected, while a process has it open and after that', async () => {
  const path = await freshPath()
  const subject = started({ path })
  const file = openInboxFile(path)
  expect([file.expected(), file.stats().expected]).toEqual([[], undefined])
  const dueAt = new Date(Date.now() + hourMs)
  await begin(subject, 'one', { dueAt })
  await begin(subject, 'two')
  expect(file.expected(1)).toEqual([{ rule: 'rule', mediaId: 'media', beganAt: new Date(noon), dueAt }])
  await subject.inbox.close()
  expect(file.expected()).toHaveLength(2)
  expect(file.stats()).toMatchObject({ waiting: 0, expected: 2 })
  const closing = expect.objectContaining({ code: 'closing' })
  await expect(async () => subject.inbox.expected?.()).rejects.toEqual(closing)
  file.close()
  expect(() => file.expected()).toThrow(closing)
})

test('no statement on the path of an event scans the expectations, or the ends', async () => {
  const path = await freshPath()
  await started({ path }).inbox.close()
  const database = openDatabase(path)
  onTestFinished(() => void database.close())
  const scans = [...Object.values(expectations), ...Object.values(expire)].filter((sql) => {
    const parameters = Array.from(sql.matchAll(/\?/g), () => 0)
    const plan = database.prepare(`EXPLAIN QUERY PLAN ${sql}`).all(...parameters) as { detail: string }[]
    return /inbox_(expectation|end)/.test(sql) && plan.some(({ detail }) => detail.startsWith('SCAN inbox'))
  })
  expect(scans).toEqual([])
})
