import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import { OwedHandlers, type OwingAttempt, releaseForMs } from '../../../src/inbox/engine/owed-handlers.ts'
import type { HandlerName } from '../../../src/inbox/inbox.ts'
import { eventOf } from '../../support/inbox.ts'
import { recordingLogger } from '../../support/recording-logger.ts'

beforeEach(() => void vi.useFakeTimers())
afterEach(() => void vi.useRealTimers())

const leaseMs = 30_000

/** The decisions of a process that has the handler `a`, next to processes with others. */
function deciding(live: () => readonly HandlerName[], own: readonly string[] = ['a']) {
  const { logger, lines } = recordingLogger()
  const owed = new OwedHandlers({ handlersOf: () => own, logger }, leaseMs, async () => [live()])
  const decide = async (names: readonly string[] | undefined, completed: readonly string[] = []) => {
    const attempt: OwingAttempt = { completed, isPartial: false, missing: [] }
    await owed.check(attempt, { accepted: eventOf('one'), owed: names })
    return attempt
  }
  /** Renews the lease on time, until the process knows the others. */
  const settle = () => {
    owed.renewed()
    vi.advanceTimersByTime(leaseMs / 3)
    owed.renewed()
  }
  return { owed, decide, settle, lines }
}

test('an attempt is partial if another process has a handler that the event owes', async () => {
  const { decide, settle } = deciding(() => [{ name: 'b' }])
  settle()
  expect(await decide(['a', 'b'])).toMatchObject({ isPartial: true, missing: [] })
  expect(await decide(['a', 'b', 'gone'])).toMatchObject({ isPartial: true, missing: ['gone'] })
  expect(await decide(['a', 'gone'])).toMatchObject({ isPartial: false, missing: ['gone'] })
})

test('an attempt is whole if nothing is owed that this process lacks', async () => {
  const { decide, settle } = deciding(() => [{ name: 'b' }])
  settle()
  for (const owed of [undefined, [], ['a']]) expect(await decide(owed)).toMatchObject({ isPartial: false, missing: [] })
  expect(await decide(['a', 'b'], ['b'])).toMatchObject({ isPartial: false, missing: [] })
})

test('a handler of another event type is another handler', async () => {
  const { decide, settle } = deciding(() => [{ name: 'b', types: ['encoding.started'] }])
  settle()
  expect(await decide(['b'])).toMatchObject({ isPartial: false, missing: ['b'] })
})

test('other processes have the time to come back after a start and after an outage', async () => {
  const { owed, decide } = deciding(() => [])
  const waits = async () => (await decide(['b'])).isPartial
  expect(await waits()).toBe(true)
  owed.renewed()
  expect(await waits()).toBe(true)
  vi.advanceTimersByTime(leaseMs / 3)
  owed.renewed()
  expect(await waits()).toBe(false)
  vi.advanceTimersByTime(leaseMs)
  expect(await waits()).toBe(true)
  owed.renewed()
  expect(await waits()).toBe(true)
  vi.advanceTimersByTime(leaseMs / 3)
  expect(await waits()).toBe(false)
})

test('an event waits if the other processes cannot be asked', async () => {
  const { decide, settle } = deciding(() => {
    throw new Error('the storage is unreachable')
  })
  settle()
  expect(await decide(['b'])).toMatchObject({ isPartial: true, missing: [] })
})

test('a handler that no process has is warned of ever more rarely, with the number of events', async () => {
  const { owed, decide, settle, lines } = deciding(() => [])
  settle()
  const attempt = await decide(['b'])
  for (let events = 0; events < 1_000; events++) owed.ended(attempt, { accepted: eventOf('one') })
  expect(lines.map(({ level, details }) => [level, details.handler, details.events])).toEqual(
    [1, 10, 100, 1_000].map((events) => ['warn', 'b', events]),
  )
  expect(lines[0]?.message).toContain('the handler b')
})

test.each([
  ['another process has its handlers', true, [1_000, 1_000, 2_000, 5_000]],
  ['its handlers are paused', false, [1_000, 1_000, 2_000, 60_000]],
])('an event is released for a tenth of its age while %s', (_, isElsewhere, expected) => {
  const accepted = { ...eventOf('one'), receivedAt: new Date(0) }
  const pauses = [0, 1_000, 20_000, 3_600_000].map((ageMs) => {
    vi.setSystemTime(ageMs)
    return releaseForMs(accepted, isElsewhere, 100)
  })
  expect(pauses).toEqual(expected)
})

test('the first releases to another process are short, and each is twice as long as the one before', () => {
  vi.setSystemTime(5_000)
  const accepted = { ...eventOf('one'), receivedAt: new Date(0) }
  expect([0, 1, 2, 5, 6].map((releases) => releaseForMs(accepted, true, releases))).toEqual([20, 40, 80, 640, 1_000])
})
