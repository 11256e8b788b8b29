import { setImmediate as nextTurn } from 'node:timers/promises'
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest'
import type { Inbox } from '../../../src/inbox/inbox.ts'
import { memoryInbox } from '../../../src/inbox/memory.ts'
import { eventOf, openInbox } from '../../support/inbox.ts'
import { silent } from '../../support/silent.ts'
import { gate, interceptedStore } from './intercepted-store.ts'

beforeEach(() => void vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] }))
afterEach(() => void vi.useRealTimers())

/** Closes an inbox, and lets the time pass that it has for that. */
async function closeInTime(inbox: Inbox) {
  const closed = inbox.close({ timeoutMs: 10_000 })
  await vi.advanceTimersByTimeAsync(10_000)
  return closed
}

describe('closing a memory inbox', () => {
  /** Opens an inbox with a running event, one that waits behind it and one that waits a minute for its retry. */
  async function inboxInUse() {
    const { inbox, calls } = openInbox(memoryInbox())
    await inbox.accept(eventOf('running', 'media'))
    await inbox.accept(eventOf('waiting', 'media'))
    await inbox.accept(eventOf('retrying'))
    const running = await calls.next()
    const retrying = await calls.next()
    retrying.finish({ status: 'retry', delayMs: 60_000, completed: [], failures: [] })
    await nextTurn()
    return { inbox, calls, running }
  }

  test('finishes the events that wait for their turn or their retry', async () => {
    const { inbox, calls, running } = await inboxInUse()
    const closed = inbox.close({ timeoutMs: 100_000 })
    const retrying = await calls.next()
    expect(retrying.event.key).toBe('retrying')
    retrying.finish()
    running.finish()
    const waiting = await calls.next()
    expect(waiting.event.key).toBe('waiting')
    waiting.finish()
    expect(await closed).toEqual({ unfinished: [] })
  })

  test('makes the next attempt at the events that wait for their retry immediately, and others on schedule', async () => {
    const { inbox, calls, running } = await inboxInUse()
    const closed = inbox.close({ timeoutMs: 100_000 })
    running.finish()
    const attempts = [await calls.next(), await calls.next()]
    const second = attempts.find(({ event }) => event.key === 'retrying')
    expect(second?.attempt.number).toBe(2)
    for (const call of attempts)
      call.finish(call === second ? { status: 'retry', delayMs: 60_000, completed: [], failures: [] } : undefined)
    await nextTurn()
    await vi.advanceTimersByTimeAsync(60_000)
    const third = await calls.next()
    expect(third.attempt.number).toBe(3)
    third.finish()
    expect(await closed).toEqual({ unfinished: [] })
  })

  test('reports waiting, running and retrying events when its time is up, and starts none of them afterwards', async () => {
    const { inbox, calls, running } = await inboxInUse()
    const closed = closeInTime(inbox)
    const last = await calls.next()
    expect(last.event.key).toBe('retrying')
    last.finish({ status: 'retry', delayMs: 60_000, completed: [], failures: [] })
    const { unfinished } = await closed
    const states = unfinished.map(({ event, state }) => [event.key, state])
    expect(states.toSorted()).toEqual([
      ['retrying', 'retrying'],
      ['running', 'running'],
      ['waiting', 'waiting'],
    ])
    running.finish()
    await vi.advanceTimersByTimeAsync(60_000)
    await nextTurn()
    const another = calls.next().catch(() => 'none')
    await vi.advanceTimersByTimeAsync(60_000)
    expect(await another).toBe('none')
  })

  test('waits without a limit if timeoutMs is Infinity', async () => {
    const { inbox, calls } = openInbox(memoryInbox())
    await inbox.accept(eventOf('1'))
    const call = await calls.next()
    const closed = inbox.close({ timeoutMs: Number.POSITIVE_INFINITY })
    await vi.advanceTimersByTimeAsync(24 * 3_600_000)
    expect(call.attempt.aborted).toBe(false)
    call.finish()
    expect(await closed).toEqual({ unfinished: [] })
  })

  test('logs each event that it cuts off, with its key, type, media item and state', async () => {
    const error = vi.fn()
    const { inbox, calls } = openInbox(memoryInbox(), { ...silent, error })
    await inbox.accept(eventOf('one', 'media'))
    await inbox.accept(eventOf('two', 'media'))
    await calls.next()
    await closeInTime(inbox)
    const message = 'the inbox closed before the event was handled'
    const { type, mediaId } = eventOf('one', 'media').event
    expect(error.mock.calls).toEqual([
      [{ key: 'one', type, mediaId, state: 'running' }, message],
      [{ key: 'two', type, mediaId, state: 'waiting' }, message],
    ])
  })

  test('reports an event whose end the store does not record in time, and logs its key once, not as one that was cut off', async () => {
    const { store, intercept } = interceptedStore()
    const [warn, error] = [vi.fn(), vi.fn()]
    const { inbox, calls } = openInbox(memoryInbox({ store }), { ...silent, warn, error })
    intercept.complete = gate().interceptor
    await inbox.accept(eventOf('one'))
    ;(await calls.next()).finish()
    await nextTurn()
    expect(await closeInTime(inbox)).toMatchObject({ unfinished: [{ event: { key: 'one' }, state: 'running' }] })
    const closed = warn.mock.calls.filter(([, line]) => line.startsWith('the inbox closed'))
    expect(closed.map(([details]) => details)).toEqual([{ key: 'one' }])
    expect(error).not.toHaveBeenCalled()
  })
})
