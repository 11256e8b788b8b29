import { setImmediate as nextTurn } from 'node:timers/promises'
import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import { memoryInbox } from '../../../src/inbox/memory.ts'
import { eventOf, openInbox } from '../../../src/testing/contract/handling.ts'

beforeEach(() => void vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] }))
afterEach(() => void vi.useRealTimers())

const later = (delayMs: number) => ({ status: 'retry', delayMs, completed: [], failures: [] }) as const

test('an attempt that was started by hand is not made again when the pause before it would have ended', async () => {
  const { inbox, calls } = openInbox(memoryInbox())
  await inbox.accept(eventOf('one'))
  ;(await calls.next()).finish(later(60_000))
  await nextTurn()
  expect(await inbox.events?.retryNow('one')).toBe(true)
  const second = await calls.next()
  await vi.advanceTimersByTimeAsync(60_000)
  expect(inbox.stats()).toMatchObject({ waiting: 0, running: 1 })
  second.finish(later(3_600_000))
  await nextTurn()
  expect(inbox.stats()).toMatchObject({ running: 0, retrying: 1 })
})
