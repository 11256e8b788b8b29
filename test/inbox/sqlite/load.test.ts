import { afterEach, beforeEach, describe, expect, onTestFinished, test, vi } from 'vitest'
import { openInboxFile } from '../../../src/inbox/sqlite.ts'
import { type Call, eventOf } from '../../support/inbox.ts'
import { freshPath, started } from './sqlite-tests.ts'
import { nothing, watched } from './watched.ts'

// The timer of the inbox that checks whether another process has changed the file.
beforeEach(() => void vi.useFakeTimers({ toFake: ['setInterval', 'clearInterval'] }))
afterEach(() => void vi.useRealTimers())
const checkFile = () => void vi.advanceTimersByTime(250)

const dead = { status: 'dead', completed: [], failures: [{ handler: 'a', message: 'Error: no' }] } as const
const claimsEvent = 'UPDATE inbox_event SET since'
const couldNotClaim = 'the inbox could not claim events'

const keysTo = (count: number) => Array.from({ length: count }, (_, index) => `key ${index}`)
const turn = () => new Promise((resolve) => setImmediate(resolve))

/** Opens an inbox with dead letters, and its file beside it, as another process does. */
async function withDeadLetters(count: number) {
  const path = await freshPath()
  const subject = watched(path)
  const { inbox, calls, ...rest } = started({ database: subject.database, concurrency: 5_000 })
  await Promise.all(keysTo(count).map((key) => inbox.accept(eventOf(key))))
  for (let left = count; left > 0; left--) (await calls.next()).finish(dead)
  await expect.poll(async () => (await inbox.stats()).deadLetters).toBe(count)
  const file = openInboxFile(path)
  onTestFinished(() => file.close())
  subject.ran.length = 0
  /** Replays dead letters beside the inbox, in one commit. */
  const replay = (keys: readonly string[]) => file.deadLetters.replayMany(keys)
  return { path, inbox, calls, replay, ...rest, ...subject }
}

/** Collects the attempts that an inbox starts, in their order. */
function collect(calls: { next(): Promise<Call> }) {
  const all: Call[] = []
  const go = async () => {
    for (;;) all.push(await calls.next())
  }
  // It ends when nothing has started for some time.
  void go().catch(() => {})
  return { all, keys: () => all.map(({ event }) => event.key) }
}

describe('dead letters that another process replays', () => {
  test('are claimed a few in each turn of the event loop, each once', async () => {
    const { inbox, calls, replay, count } = await withDeadLetters(2_500)
    await inbox.accept(eventOf('in memory'))
    await calls.next()
    const { keys } = collect(calls)
    await replay(keysTo(2_500))
    checkFile()
    const perTurn: number[] = []
    for (let before = 0; before < 2_500; before += perTurn.at(-1) ?? 0) {
      await turn()
      perTurn.push(count(claimsEvent) - before)
    }
    // One turn of the test can see two of the inbox.
    expect(Math.max(...perTurn)).toBeLessThanOrEqual(100)
    await expect.poll(keys).toHaveLength(2_500)
    expect(keys()).toEqual(keysTo(2_500))
    expect(count(claimsEvent)).toBe(2_500)
  })

  test('are handled once, also those that are replayed while others are being read', async () => {
    const { calls, replay, count } = await withDeadLetters(1_000)
    const { keys } = collect(calls)
    await replay(keysTo(1_000).slice(0, 990))
    checkFile()
    await turn()
    await replay(keysTo(1_000).slice(990))
    checkFile()
    await expect.poll(keys).toHaveLength(1_000)
    checkFile()
    for (let i = 0; i < 50; i++) await turn()
    expect(keys()).toEqual(keysTo(1_000))
    expect(count(claimsEvent)).toBe(1_000)
  })

  test.each([1, 10])('are reported once if the inbox closes while it reads them (after %i turns)', async (turns) => {
    const { path, inbox, calls, replay, lines } = await withDeadLetters(1_000)
    await replay(keysTo(1_000))
    checkFile()
    for (let i = 0; i < turns; i++) await turn()
    const { unfinished } = await inbox.close({ timeoutMs: 0 })
    expect(unfinished.map(({ event }) => event.key).toSorted()).toEqual(keysTo(1_000).toSorted())
    calls.finishAll()
    for (let i = 0; i < 50; i++) await turn()
    expect(lines).not.toContain(couldNotClaim)
    const next = collect(started({ path, concurrency: 1_000 }).calls)
    await expect.poll(next.keys).toHaveLength(1_000)
  })

  test('are handled once the file can be read again, if it could not be at first', async () => {
    const { calls, replay, failing, logged } = await withDeadLetters(2)
    failing.sql = /^SELECT \* FROM inbox_event/
    await replay(keysTo(2))
    checkFile()
    await turn()
    const err = expect.objectContaining({ message: 'disk I/O error' })
    expect(logged).toEqual([{ message: couldNotClaim, details: { err } }])
    failing.sql = nothing
    checkFile()
    expect([(await calls.next()).event.key, (await calls.next()).event.key]).toEqual(keysTo(2))
  })

  test('are handled in spite of one that cannot be parsed, which is reported once and stays', async () => {
    const { path, inbox, calls, replay, database, logged } = await withDeadLetters(3)
    database.exec(`CREATE TRIGGER corrupt AFTER INSERT ON inbox_event WHEN new.event LIKE '%"key 0"%'
                   BEGIN UPDATE inbox_event SET event = '{' WHERE id = new.id; END`)
    await replay(['key 0', 'key 1'])
    checkFile()
    expect((await calls.next()).event.key).toBe('key 1')
    await turn()
    await replay(['key 2'])
    checkFile()
    expect((await calls.next()).event.key).toBe('key 2')
    calls.finishAll()
    await inbox.close()
    const message = 'an event of the inbox cannot be read, and stays in its storage'
    const err = expect.objectContaining({ name: 'UnreadableEvent', cause: expect.any(SyntaxError) })
    expect(logged).toEqual([{ message, details: { row: expect.any(Number), err } }])
    const file = openInboxFile(path)
    onTestFinished(() => file.close())
    expect(file.stats()).toMatchObject({ waiting: 1 })
  })
})

test('an event that is accepted while the inbox reads its file is handled once, also if it ends meanwhile', async () => {
  const { inbox, calls, replay, lines } = await withDeadLetters(2_500)
  const { all, keys } = collect(calls)
  const finish = (key: string) => {
    const call = all.find(({ event }) => event.key === key)
    if (call === undefined) throw new Error(`${key} has not started`)
    call.finish()
  }
  await replay(keysTo(2_500))
  checkFile()
  for (const key of ['ends meanwhile', 'goes on']) await inbox.accept(eventOf(key))
  await expect.poll(keys).toContain('ends meanwhile')
  finish('ends meanwhile')
  await expect.poll(keys).toHaveLength(2_502)
  finish('goes on')
  await inbox.accept(eventOf('behind', 'media of goes on'))
  await expect.poll(keys).toContain('behind')
  expect(keys().toSorted()).toEqual([...keysTo(2_500), 'ends meanwhile', 'goes on', 'behind'].toSorted())
  expect(lines).not.toContain(couldNotClaim)
})

test('a dead letter that the inbox replays itself is handled once the file can be read, if it cannot be now', async () => {
  const { inbox, calls, failing } = await withDeadLetters(1)
  failing.sql = /^SELECT \* FROM inbox_event/
  expect(await inbox.deadLetters.replay('key 0')).toBe(true)
  failing.sql = nothing
  checkFile()
  expect((await calls.next()).event.key).toBe('key 0')
})
