import { describe, expect, onTestFinished, test, vi } from 'vitest'
import { openDatabase } from '../../../src/inbox/sqlite/driver.ts'
import { type Calls, eventOf, until } from '../../support/inbox.ts'
import { freshPath, started } from './sqlite-tests.ts'

function ask(path: string, question: string): number {
  const database = openDatabase(path)
  const { answer } = database.prepare(question).get() as { answer: number }
  database.close()
  return answer
}

const keysIn = (path: string) => ask(path, 'SELECT count(*) AS answer FROM inbox_event')
const pagesOf = (path: string) => ask(path, 'SELECT page_count AS answer FROM pragma_page_count')

async function finish(calls: Calls, count: number) {
  for (let i = 0; i < count; i++) (await calls.next()).finish()
}

describe('the keys of finished events', () => {
  test('are forgotten after ttlMs, slice by slice, and other keys are not', async () => {
    vi.useFakeTimers({ toFake: ['Date'] })
    onTestFinished(() => void vi.useRealTimers())
    const path = await freshPath()
    const { inbox, calls } = started({ path, ttlMs: 60_000 })
    for (let i = 0; i < 2_000; i += 500) {
      const events = Array.from({ length: 500 }, (_, j) => eventOf(`old ${i + j}`))
      await Promise.all(events.map((event) => inbox.accept(event)))
      await finish(calls, 500)
    }
    await inbox.accept(eventOf('running'))
    await calls.next()
    await inbox.accept(eventOf('dead'))
    const dead = await calls.next()
    dead.finish({ status: 'dead', completed: [], failures: [] })
    expect(await inbox.accept(eventOf('old 0'))).toBe('duplicate')
    vi.setSystemTime(Date.now() + 60_001)
    await until(async () => keysIn(path) === 2)
    expect(await inbox.accept(eventOf('running'))).toBe('duplicate')
    expect(await inbox.accept(eventOf('dead'))).toBe('duplicate')
    expect(await inbox.accept(eventOf('old 0'))).toBe('accepted')
  })

  test('are forgotten even if the clock was wrong when they were accepted', async () => {
    const path = await freshPath()
    const { inbox, calls } = started({ path, ttlMs: 500 })
    await inbox.accept(eventOf('of the future'))
    await finish(calls, 1)
    await until(async () => (await inbox.stats()).running === 0)
    const database = openDatabase(path)
    database.exec('UPDATE inbox_event SET received_at = received_at + 1000000000, ended_at = ended_at + 1000000000')
    database.close()
    await until(async () => keysIn(path) === 0)
  })
})

test('the file stops growing', async () => {
  vi.useFakeTimers({ toFake: ['Date'] })
  onTestFinished(() => void vi.useRealTimers())
  const path = await freshPath()
  const { inbox, calls } = started({ path, ttlMs: 60_000 })
  const sizeAfter = async (round: number) => {
    for (let i = 0; i < 20; i++) {
      const events = Array.from({ length: 50 }, (_, j) => eventOf(`${round} ${i} ${j}`))
      await Promise.all(events.map((event) => inbox.accept(event)))
      await finish(calls, 50)
    }
    await until(async () => (await inbox.stats()).running === 0)
    vi.setSystemTime(Date.now() + 60_001)
    await until(async () => keysIn(path) === 0)
    return pagesOf(path)
  }
  await sizeAfter(0)
  const before = await sizeAfter(1)
  const later = [await sizeAfter(2), await sizeAfter(3), await sizeAfter(4)]
  expect(Math.max(...later)).toBeLessThanOrEqual(before * 1.2)
})

test('the oldest dead letters make room for newer ones, which is logged', async () => {
  const path = await freshPath()
  const { inbox, calls, lines } = started({ path, maxDeadLetters: 3 })
  for (const key of ['1', '2', '3', '4', '5']) {
    await inbox.accept(eventOf(key))
    const call = await calls.next()
    call.finish({ status: 'dead', completed: [], failures: [] })
  }
  await until(async () => (await inbox.stats()).deadLetters === 3)
  expect((await inbox.deadLetters.list()).map(({ key }) => key)).toEqual(['5', '4', '3'])
  expect(lines.filter((line) => line.includes('dropped')).length).toBe(2)
  expect(await inbox.accept(eventOf('4'))).toBe('duplicate')
})

test('events that arrive together share a commit, which accepts one event of each key', async () => {
  const path = await freshPath()
  const statements: string[] = []
  const database = openDatabase(path)
  const { inbox } = started({
    database: {
      exec(sql) {
        statements.push(sql)
        return database.exec(sql)
      },
      prepare: (sql) => database.prepare(sql),
      close: () => database.close(),
    },
  })
  statements.length = 0
  const keys = ['a', 'b', 'a', 'c', 'b', 'a']
  const acceptances = await Promise.all(keys.map((key) => inbox.accept(eventOf(key))))
  expect(acceptances).toEqual(['accepted', 'accepted', 'duplicate', 'accepted', 'duplicate', 'duplicate'])
  expect(statements).toEqual(['BEGIN IMMEDIATE', 'COMMIT'])
  statements.length = 0
  expect(await inbox.acceptAll?.(['c', 'd', 'e'].map((key) => eventOf(key)))).toEqual([
    'duplicate',
    'accepted',
    'accepted',
  ])
  expect(statements.slice(0, 2)).toEqual(['BEGIN IMMEDIATE', 'COMMIT'])
})

test('a list of events is not accepted in part', async () => {
  const { inbox, calls } = started({ path: await freshPath(), maxWaiting: 2, concurrency: 1 })
  await inbox.accept(eventOf('running'))
  await calls.next()
  const accept = (...keys: string[]) => inbox.acceptAll?.(keys.map((key) => eventOf(key)))
  expect(await accept('running', '1', '2', '3')).toEqual(['duplicate', 'overloaded', 'overloaded', 'overloaded'])
  expect((await inbox.stats()).waiting).toBe(0)
  expect(await accept('1', '2')).toEqual(['accepted', 'accepted'])
})

test('a list waits for an event of its own that is on its way', async () => {
  const { inbox } = started({ path: await freshPath() })
  const [one, list] = await Promise.all([inbox.accept(eventOf('1')), inbox.acceptAll?.([eventOf('1'), eventOf('2')])])
  expect([one, list]).toEqual(['accepted', ['duplicate', 'accepted']])
})

test('events above maxWaiting are not accepted', async () => {
  const { inbox, calls } = started({ path: await freshPath(), maxWaiting: 2, concurrency: 1 })
  await inbox.accept(eventOf('running'))
  const running = await calls.next()
  const accept = async (key: string) => inbox.accept(eventOf(key))
  const acceptances = await Promise.allSettled(['1', '2', '3', '4'].map(accept))
  const [accepted, overloaded] = [{ value: 'accepted' }, { value: 'overloaded' }]
  expect(acceptances).toMatchObject([accepted, accepted, overloaded, overloaded])
  expect(await inbox.accept(eventOf('1'))).toBe('duplicate')
  running.finish()
  await calls.next()
  await until(async () => (await inbox.stats()).running === 1)
  expect(await inbox.accept(eventOf('3'))).toBe('accepted')
})
