import { beforeEach, describe, expect, test, vi } from 'vitest'
import type { InboxDefinition } from '../../src/inbox/inbox.ts'
import type { MemoryInboxOptions } from '../../src/inbox/memory.ts'
import { asOnWorkers } from '../support/as-on-workers.ts'
import { type Calls, eventOf, openInbox } from '../support/inbox.ts'

// Workers stop the timers and the promises of a request together with it. These tests clear its timers, and its
// handlers never end.

let memoryInbox: (options?: MemoryInboxOptions) => InboxDefinition
asOnWorkers({ fakeTime: true })
beforeEach(async () => {
  memoryInbox = (await import('../../src/inbox/memory.ts')).memoryInbox
})

const waitUntil = () => {}

const taken = new WeakMap<Calls, string[]>()

/** Takes the attempts that start within 5 ms. */
async function startedNow(calls: Calls) {
  const started = taken.get(calls) ?? []
  if (!taken.has(calls)) {
    taken.set(calls, started)
    void (async () => {
      for (;;) {
        // Rejects when none starts for some seconds, which pass immediately here.
        const call = await calls.next().catch(() => undefined)
        if (call !== undefined) started.push(`${call.event.key} ${call.attempt.number}`)
      }
    })()
  }
  await vi.advanceTimersByTimeAsync(5)
  return started.splice(0)
}

describe('on Workers', () => {
  test.each([
    ['with', { waitUntil }],
    ['without', {}],
  ])('an event whose request ended before its turn is handled with the next delivery, %s a context', async (_, how) => {
    const { inbox, calls } = openInbox(memoryInbox())
    await inbox.accept(eventOf('one'), how)
    vi.clearAllTimers()
    await vi.advanceTimersByTimeAsync(31_000)
    await inbox.accept(eventOf('two'), how)
    expect((await startedNow(calls)).toSorted()).toEqual(['one 1', 'two 1'])
  })

  test('events whose requests ended give their places back, and are handled again', async () => {
    const { inbox, calls } = openInbox(memoryInbox())
    const keys = Array.from({ length: 16 }, (_, i) => `lost ${i}`)
    for (const key of keys) await inbox.accept(eventOf(key), { waitUntil })
    await vi.advanceTimersByTimeAsync(5)
    for (const _ of keys) await calls.next()
    vi.clearAllTimers()
    await vi.advanceTimersByTimeAsync(31_000)
    await inbox.accept(eventOf('next'), { waitUntil })
    const started = await startedNow(calls)
    expect(started).toContain('next 1')
    expect(started).toContain('lost 0 2')
  })

  test('an event of the same media item does not wait for one whose request ended', async () => {
    const { inbox, calls } = openInbox(memoryInbox())
    await inbox.accept(eventOf('one', 'media'), { waitUntil })
    await vi.advanceTimersByTimeAsync(5)
    await calls.next()
    vi.clearAllTimers()
    await vi.advanceTimersByTimeAsync(31_000)
    await inbox.accept(eventOf('two', 'media'), { waitUntil })
    expect(await startedNow(calls)).toContain('two 1')
  })

  test.each([
    ['new to a full inbox', 'new', 1],
    ['sent again', 'one', 10],
  ])('the delivery that takes over may be one that is %s', async (_, key, maxWaiting) => {
    const { inbox, calls } = openInbox(memoryInbox({ maxWaiting, concurrency: 1 }))
    await inbox.accept(eventOf('one'))
    vi.clearAllTimers()
    await vi.advanceTimersByTimeAsync(31_000)
    await inbox.accept(eventOf(key))
    expect(await startedNow(calls)).toEqual(['one 1'])
  })

  test('an event that runs in the request of another delivery is not taken over while that lasts', async () => {
    const { inbox, calls } = openInbox(memoryInbox())
    await inbox.accept(eventOf('one'))
    vi.clearAllTimers()
    await vi.advanceTimersByTimeAsync(31_000)
    await inbox.accept(eventOf('two'))
    expect((await startedNow(calls)).toSorted()).toEqual(['one 1', 'two 1'])
    await inbox.accept(eventOf('three'))
    expect(await startedNow(calls)).toEqual(['three 1'])
  })

  test('the late result of a run that was given up does not count for the next attempt', async () => {
    const { inbox, calls } = openInbox(memoryInbox())
    await inbox.accept(eventOf('one'), { waitUntil })
    await vi.advanceTimersByTimeAsync(5)
    const late = await calls.next()
    await vi.advanceTimersByTimeAsync(31_000)
    await inbox.accept(eventOf('two'), { waitUntil })
    expect(await startedNow(calls)).toContain('one 2')
    late.finish({ status: 'dead', completed: [], failures: [{ handler: 'h', message: 'late' }] })
    await vi.advanceTimersByTimeAsync(5)
    expect(inbox.stats()).toMatchObject({ running: 2, deadLetters: 0 })
  })

  test('an event whose retry ended with its request is handled with the next delivery', async () => {
    const { inbox, calls } = openInbox(memoryInbox())
    await inbox.accept(eventOf('one'), { waitUntil })
    await vi.advanceTimersByTimeAsync(5)
    const call = await calls.next()
    call.finish({ status: 'retry', delayMs: 2_000, completed: [], failures: [] })
    await vi.advanceTimersByTimeAsync(5)
    vi.clearAllTimers()
    await vi.advanceTimersByTimeAsync(31_000)
    await inbox.accept(eventOf('two'), { waitUntil })
    expect((await startedNow(calls)).toSorted()).toEqual(['one 2', 'two 1'])
  })

  test('an event whose request ends each time becomes a dead letter', async () => {
    const { inbox, calls } = openInbox(memoryInbox())
    await inbox.accept(eventOf('fatal'), { waitUntil })
    for (let i = 1; i <= 12; i++) {
      await startedNow(calls)
      await vi.advanceTimersByTimeAsync(31_000)
      await inbox.accept(eventOf(`other ${i}`), { waitUntil })
    }
    expect(await inbox.deadLetters.get('fatal')).toMatchObject({
      failures: [{ handler: 'none', message: '10 requests ended before the event was handled' }],
    })
  })

  test('a handler has less time than the platform gives its request', async () => {
    const { Deadlines } = await import('../../src/internal/deadlines.ts')
    const deadlines = new Deadlines(30_000)
    const expire = vi.fn()
    deadlines.add({ startedAt: performance.now(), expire })
    await vi.advanceTimersByTimeAsync(24_900)
    expect(expire).not.toHaveBeenCalled()
    await vi.advanceTimersByTimeAsync(200)
    expect(expire).toHaveBeenCalledOnce()
  })
})
