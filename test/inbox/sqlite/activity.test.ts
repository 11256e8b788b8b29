import { expect, onTestFinished, test, vi } from 'vitest'
import type { ActivityMinute } from '../../../src/inbox/reading.ts'
import { openInboxFile, sqliteInbox } from '../../../src/inbox/sqlite.ts'
import { eventOf, openInbox, until } from '../../support/inbox.ts'
import { silent } from '../../support/silent.ts'
import { freshPath } from './sqlite-tests.ts'
import { nothing, watched } from './watched.ts'

const writes = 'INSERT INTO inbox_activity'
const start = new Date('2026-03-01T12:00:30Z')

/** Sets the clock, and leaves the timers as they are. */
function clock() {
  vi.useFakeTimers({ toFake: ['Date'], now: start })
  onTestFinished(() => void vi.useRealTimers())
}

/** Opens an inbox, and returns functions that tell it of deliveries and attempts. */
function opened(path: string, logger = silent) {
  const { database, failing, count } = watched(path)
  const { inbox, observers } = openInbox(sqliteInbox({ database }), logger)
  onTestFinished(async () => {
    await inbox.close()
    database.close()
  })
  const [observer] = observers
  const accept = () => observer?.delivery({ outcome: 'accepted', status: 200, durationMs: 3 })
  const handle = () => observer?.attempt({ outcome: 'handled', sinceReceivedMs: 40 })
  const activity = async (since = start) => (await inbox.activity?.(since)) as readonly ActivityMinute[]
  return { inbox, accept, handle, activity, failing, count }
}

const numbersOf = (minutes: readonly ActivityMinute[]) =>
  minutes.map(({ startedAt, accepted, handled }) => [startedAt.toISOString().slice(11, 16), accepted, handled])

test('the activity of a minute in which the process was restarted is counted together', async () => {
  clock()
  const path = await freshPath()
  const first = opened(path)
  first.accept()
  first.accept()
  first.handle()
  await first.inbox.close()
  const second = opened(path)
  second.accept()
  expect(numbersOf(await second.activity())).toEqual([['12:00', 3, 1]])
  vi.setSystemTime(+start + 60_000)
  second.handle()
  expect(numbersOf(await second.activity())).toEqual([
    ['12:00', 3, 1],
    ['12:01', 0, 1],
  ])
  expect(numbersOf(await second.activity(new Date(+start + 60_000)))).toEqual([['12:01', 0, 1]])
  const file = openInboxFile(path)
  onTestFinished(() => file.close())
  expect(await file.activity(start)).toEqual(await second.activity())
})

test('activity is written every 5 s if there was any, even if it is not read', async () => {
  vi.useFakeTimers({ toFake: ['setInterval'] })
  onTestFinished(() => void vi.useRealTimers())
  const { accept, count } = opened(await freshPath())
  // The inbox has started.
  await until(async () => count('DELETE FROM inbox_expectation_end') > 0)
  accept()
  vi.advanceTimersByTime(4_900)
  accept()
  const cleanUps = count('DELETE FROM inbox_expectation_end')
  await until(async () => count('DELETE FROM inbox_expectation_end') > cleanUps)
  expect(count(writes)).toBe(0)
  vi.advanceTimersByTime(100)
  await until(async () => count(writes) === 1)
  vi.advanceTimersByTime(5_000)
  const later = count('DELETE FROM inbox_expectation_end')
  await until(async () => count('DELETE FROM inbox_expectation_end') > later)
  expect(count(writes)).toBe(1)
  accept()
  vi.advanceTimersByTime(5_000)
  await until(async () => count(writes) === 2)
})

test('activity that could not be written is written the next time, with what was counted since', async () => {
  clock()
  const { accept, activity, failing } = opened(await freshPath())
  accept()
  failing.sql = /^INSERT INTO inbox_activity/
  await expect(activity()).rejects.toThrow('disk I/O error')
  vi.setSystemTime(+start + 60_000)
  accept()
  await expect(activity()).rejects.toThrow('disk I/O error')
  failing.sql = nothing
  expect(numbersOf(await activity())).toEqual([
    ['12:00', 1, 0],
    ['12:01', 1, 0],
  ])
})

test('activity is kept for 24 h', async () => {
  clock()
  const { accept, activity } = opened(await freshPath())
  accept()
  await activity()
  vi.setSystemTime(+start + 86_400_000)
  accept()
  expect(await activity()).toHaveLength(2)
  vi.setSystemTime(+start + 86_460_000)
  accept()
  expect(numbersOf(await activity())).toEqual([
    ['12:00', 1, 0],
    ['12:01', 1, 0],
  ])
})

test('each step in the file says how long it took, and that it failed', async () => {
  const { database, failing } = watched(await freshPath())
  const steps: unknown[][] = []
  const accepts = () => steps.filter(([step]) => step === 'accept')
  const inbox = sqliteInbox({ database }).open({
    handle: async () => ({ status: 'done' }),
    handlersOf: () => [],
    handlers: () => [],
    parse: () => {
      throw new Error('nothing to parse')
    },
    logger: silent,
    observe() {},
    measured: (step, durationMs, error) => steps.push([step, durationMs >= 0, (error as Error | undefined)?.message]),
  })
  onTestFinished(async () => {
    failing.sql = nothing
    await inbox.close()
    database.close()
  })

  await Promise.all([inbox.accept(eventOf('one')), inbox.accept(eventOf('two'))])
  // Events of the same moment share a commit.
  expect(accepts()).toEqual([['accept', true, undefined]])
  await until(async () => steps.some(([step]) => step === 'record'))
  expect(new Set(steps.map(([step]) => step))).toEqual(new Set(['accept', 'claim', 'record']))
  failing.sql = /INTO inbox_event/
  await expect(Promise.resolve(inbox.accept(eventOf('three')))).rejects.toMatchObject({ code: 'unavailable' })
  expect(accepts().at(-1)).toEqual(['accept', true, 'disk I/O error'])
})
