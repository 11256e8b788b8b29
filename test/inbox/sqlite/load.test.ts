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
const claimsLane = 'UPDATE inbox_lane SET owner = ?'
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
  test('are claimed a few in each turn of the event loop, also those that are replayed meanwhile, each once', async () => {
    const { inbox, calls, replay, count } = await withDeadLetters(2_500)
    await inbox.accept(eventOf('running'))
    await calls.next()
    const { keys } = collect(calls)
    const before = count(claimsLane)
    await replay(keysTo(2_500).slice(0, 2_000))
    checkFile()
    const perTurn: number[] = []
    for (let claimed = 0; claimed < 2_500; claimed += perTurn.at(-1) ?? 0) {
      await turn()
      perTurn.push(count(claimsLane) - before - claimed)
      if (perTurn.length === 3) await replay(keysTo(2_500).slice(2_000))
      if (perTurn.length === 3) checkFile()
    }
    // One turn of the test can see some of the inbox.
    expect(Math.max(...perTurn)).toBeLessThanOrEqual(256)
    await expect.poll(keys).toHaveLength(2_500)
    expect(keys().toSorted()).toEqual(keysTo(2_500).toSorted())
    expect(count(claimsLane) - before).toBe(2_500)
  })

  test.each([1, 10])('are reported once if the inbox closes while it claims them (after %i turns)', async (turns) => {
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
    failing.sql = /^SELECT media, turn/
    await replay(keysTo(2))
    checkFile()
    const err = expect.objectContaining({ message: 'disk I/O error' })
    await expect.poll(() => logged).toEqual([{ message: couldNotClaim, details: { err } }])
    failing.sql = nothing
    expect([(await calls.next()).event.key, (await calls.next()).event.key].toSorted()).toEqual(keysTo(2))
  })
})
