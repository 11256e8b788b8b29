import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import { OwedHandlers, type OwingAttempt, releaseForMs } from '../../../src/inbox/engine/owed-handlers.ts'
import type { HandlerName } from '../../../src/inbox/inbox.ts'
import { eventOf } from '../../support/inbox.ts'
import { recordingLogger } from '../../support/recording-logger.ts'

beforeEach(() => void vi.useFakeTimers())
afterEach(() => void vi.useRealTimers())

const ttlMs = 3_600_000

/** The decisions of a process that has the handler `a`, next to processes with others. */
function deciding(live: () => readonly HandlerName[], own: readonly string[] = ['a'], removed = ['gone']) {
  const { logger, lines } = recordingLogger()
  const read = async () => ({ live: [live()], removed })
  const owed = new OwedHandlers({ handlersOf: () => own, logger }, ttlMs, read)
  const decide = async (names: readonly string[] | undefined, earlier: Partial<OwingAttempt> = {}) => {
    const attempt: OwingAttempt = { completed: [], ...earlier, lacksHandlers: false, isElsewhere: false, missing: [] }
    const dead = await owed.check(attempt, { accepted: { ...eventOf('one'), receivedAt: new Date(0) }, owed: names })
    return { ...attempt, dead }
  }
  return { owed, decide, lines }
}

test('an attempt is partial if another process has a handler that the event owes', async () => {
  const { decide } = deciding(() => [{ name: 'b' }])
  expect(await decide(['a', 'b'])).toMatchObject({ lacksHandlers: true, missing: [] })
  expect(await decide(['a', 'b', 'gone'])).toMatchObject({ lacksHandlers: true, missing: ['gone'] })
  expect(await decide(['a', 'gone'])).toMatchObject({ lacksHandlers: false, isElsewhere: false, missing: ['gone'] })
})

test('an attempt is whole if nothing is owed that this process lacks', async () => {
  const { decide } = deciding(() => [{ name: 'b' }])
  for (const owed of [undefined, [], ['a']])
    expect(await decide(owed)).toMatchObject({ lacksHandlers: false, isElsewhere: false, missing: [] })
  expect(await decide(['a', 'b'], { completed: ['b'] })).toMatchObject({
    lacksHandlers: false,
    isElsewhere: false,
    missing: [],
  })
})

test('a handler of another event type is another handler', async () => {
  const { decide } = deciding(() => [{ name: 'gone', types: ['encoding.started'] }])
  expect(await decide(['gone'])).toMatchObject({ lacksHandlers: false, isElsewhere: false, missing: ['gone'] })
})

test('a handler that no process has, and that none has removed, stays owed', async () => {
  vi.setSystemTime(ttlMs)
  const { decide, lines } = deciding(() => [])
  for (const _ of [1, 2])
    expect(await decide(['a', 'b'])).toMatchObject({ lacksHandlers: true, missing: [], dead: undefined })
  expect(lines.map(({ level, details }) => [level, details.handler])).toEqual([['warn', 'b']])
})

test('an event is a dead letter once a handler that no process has was owed for longer than keys are remembered', async () => {
  vi.setSystemTime(ttlMs + 1)
  const final = { handler: 'c', message: 'no', final: true } as const
  const { decide } = deciding(() => [], ['a', 'c'])
  expect(await decide(['a', 'b', 'c'])).toMatchObject({ lacksHandlers: true, dead: undefined })
  const failures = [final, { handler: 'failing', message: 'again' }]
  const { dead } = await decide(['a', 'b', 'c', 'gone'], { completed: ['a'], failures })
  const message = expect.stringContaining('no process has this handler')
  expect(dead).toEqual({ status: 'dead', completed: ['a'], failures: [final, { handler: 'b', message }] })
})

test('an event of any age is left to a process that has one of its handlers', async () => {
  vi.setSystemTime(10 * ttlMs)
  const { decide } = deciding(() => [{ name: 'b' }])
  expect(await decide(['b', 'c'])).toMatchObject({ lacksHandlers: true, dead: undefined })
})

test('an event waits if the other processes cannot be asked', async () => {
  const { decide } = deciding(() => {
    throw new Error('the storage is unreachable')
  })
  expect(await decide(['b'])).toMatchObject({ lacksHandlers: true, missing: [] })
})

test('a removed handler is warned of ever more rarely, with the number of events', async () => {
  const { owed, decide, lines } = deciding(() => [])
  const attempt = await decide(['gone'])
  for (let events = 0; events < 1_000; events++) owed.ended(attempt, { accepted: eventOf('one') })
  expect(lines.map(({ level, details }) => [level, details.handler, details.events])).toEqual(
    [1, 10, 100, 1_000].map((events) => ['warn', 'gone', events]),
  )
  expect(lines[0]?.message).toContain('the handler gone')
})

test.each([
  ['another process has its handlers', true, [1_000, 1_000, 2_000, 5_000]],
  ['its handlers are paused', false, [1_000, 1_000, 2_000, 60_000]],
])('an event is released for a tenth of its age while %s', (_, isElsewhere, expected) => {
  const accepted = { ...eventOf('one'), receivedAt: new Date(0) }
  const pauses = [0, 1_000, 20_000, 3_600_000].map((ageMs) => {
    vi.setSystemTime(ageMs)
    return releaseForMs(accepted, isElsewhere)
  })
  expect(pauses).toEqual(expected)
})
