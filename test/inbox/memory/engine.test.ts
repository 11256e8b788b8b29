import { setImmediate as nextTurn } from 'node:timers/promises'
import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import { memoryInbox } from '../../../src/inbox/memory.ts'
import { eventOf, openInbox } from '../../support/inbox.ts'

beforeEach(() => void vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] }))
afterEach(() => void vi.useRealTimers())

/** Opens an inbox, and handles each event by itself in `handle`. */
function handling(concurrency: number, handle: (mediaId: string, key: string) => Promise<void>) {
  const { inbox, calls } = openInbox(memoryInbox({ concurrency }))
  const run = async () => {
    for (;;) {
      const call = await calls.next()
      void handle(call.event.mediaId, call.event.key).then(() => call.finish())
    }
  }
  void run()
  return inbox
}

test('every event runs in the order of its media item, with any accepted and handled in between', async () => {
  const ran = new Map<string, number[]>()
  const inbox = handling(3, async (mediaId, key) => {
    if (Number(key) % 3 === 0) await nextTurn()
    ran.set(mediaId, [...(ran.get(mediaId) ?? []), Number(key)])
  })
  for (let event = 0; event < 3_000; event++) {
    await inbox.accept(eventOf(`${event}`, `media ${(event * 7) % 11}`))
    if (event % 50 === 0) await nextTurn()
  }
  const all = () => [...ran.values()].flat()
  while (all().length < 3_000) await nextTurn()
  for (const numbers of ran.values()) expect(numbers).toEqual(numbers.toSorted((a, b) => a - b))
  expect(new Set(all()).size).toBe(3_000)
})

test('a media item with one event has its turn before another with many has ended', async () => {
  const { inbox, calls } = openInbox(memoryInbox({ concurrency: 1 }))
  for (let event = 0; event < 100; event++) await inbox.accept(eventOf(`long ${event}`, 'long'))
  await inbox.accept(eventOf('short', 'short'))
  const keys: string[] = []
  for (let turn = 0; turn < 3; turn++) {
    const call = await calls.next()
    keys.push(call.event.key)
    call.finish()
  }
  expect(keys).toEqual(['long 0', 'short', 'long 1'])
})

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
