import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import { memoryInbox } from '../../../src/inbox/memory.ts'
import { eventOf, openInbox } from '../../support/inbox.ts'

beforeEach(() => void vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] }))
afterEach(() => void vi.useRealTimers())

test('no timer keeps an event in memory once it was handled', async () => {
  const { inbox, calls } = openInbox(memoryInbox())
  const before = vi.getTimerCount()
  let promise: Promise<unknown> | undefined
  const waitUntil = (handled: Promise<unknown>) => {
    promise = handled
  }
  await inbox.accept(eventOf('one'), { waitUntil })
  ;(await calls.next()).finish()
  await promise
  expect(vi.getTimerCount()).toBe(before)
})
