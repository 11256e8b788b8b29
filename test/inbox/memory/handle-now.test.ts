import { describe, expect, onTestFinished, test, vi } from 'vitest'
import { lruStore } from '../../../src/idempotency/lru.ts'
import type { IdempotencyStore } from '../../../src/idempotency/store.ts'
import type { AttemptResult, Inbox } from '../../../src/inbox/inbox.ts'
import { type MemoryInboxOptions, memoryInbox } from '../../../src/inbox/memory.ts'
import { eventOf, openInbox } from '../../support/inbox.ts'
import { silent } from '../../support/silent.ts'
import { answerLost, down, gate, interceptedStore } from './intercepted-store.ts'

const withCode = (code: string) => expect.objectContaining({ name: 'WebhookError', code })
const failed = (completed: string[]): AttemptResult => ({ status: 'dead', completed, failures: [] })

const open = (options: MemoryInboxOptions, logger = silent) => {
  const { inbox, calls } = openInbox(memoryInbox(options), logger, 'loose', 'handled')
  return { inbox: inbox as Required<Inbox>, calls }
}

function machine(shared?: IdempotencyStore) {
  const { store, ...control } = interceptedStore(shared)
  return { ...control, ...open({ store }) }
}

describe('handling an event before its acknowledgement', () => {
  test('says handled, and duplicate from then on', async () => {
    const { inbox, calls } = machine()
    const result = inbox.handleNow(eventOf('one'))
    const call = await calls.next()
    call.finish()
    expect(await result).toBe('handled')
    expect(await inbox.handleNow(eventOf('one'))).toBe('duplicate')
  })

  test('shares the result with every duplicate that arrives meanwhile', async () => {
    const { inbox, calls, count } = machine()
    const results = [1, 2, 3].map(() => inbox.handleNow(eventOf('one')))
    const call = await calls.next()
    results.push(inbox.handleNow(eventOf('one')))
    call.finish()
    expect(await Promise.all(results)).toEqual(['handled', 'handled', 'handled', 'handled'])
    expect(count('claim one')).toBe(1)
  })

  test('also shares a failure', async () => {
    const { inbox, calls } = machine()
    const results = [inbox.handleNow(eventOf('one')), inbox.handleNow(eventOf('one'))]
    const call = await calls.next()
    call.finish(failed([]))
    expect(await Promise.all(results)).toEqual(['failed', 'failed'])
  })

  test('gives the claim back after a failure, and a retry leaves out the handlers that succeeded', async () => {
    const { inbox, calls, count } = machine()
    const first = inbox.handleNow(eventOf('one'))
    const call = await calls.next()
    expect([call.attempt.number, call.attempt.completed]).toEqual([1, []])
    call.finish(failed(['a']))
    expect(await first).toBe('failed')
    expect(count('release one')).toBe(1)
    expect(inbox.stats()).toEqual({ waiting: 0, running: 0, retrying: 0, deadLetters: 0 })

    const second = inbox.handleNow(eventOf('one'))
    const again = await calls.next()
    expect([again.attempt.number, again.attempt.completed]).toEqual([2, ['a']])
    again.finish()
    expect(await second).toBe('handled')
  })

  test('counts its attempts until the event is handled, and from 1 when it is sent again long after', async () => {
    const { inbox, calls } = open({ store: lruStore({ max: 1 }) })
    const numbers: number[] = []
    const handle = async (key: string, result?: AttemptResult) => {
      const answer = inbox.handleNow(eventOf(key))
      const call = await calls.next()
      if (key === 'one') numbers.push(call.attempt.number)
      call.finish(result)
      return answer
    }
    expect(await handle('one', failed([]))).toBe('failed')
    expect(await handle('one', failed([]))).toBe('failed')
    expect(await handle('one')).toBe('handled')
    // The store forgets the first event.
    expect(await handle('two')).toBe('handled')
    expect(await handle('one')).toBe('handled')
    expect(numbers).toEqual([1, 2, 3, 1])
  })

  test('says failed only once the claim was released, so that a retry on another machine runs', async () => {
    const { inbox, calls, intercept, shared } = machine()
    const { open, interceptor } = gate()
    intercept.release = interceptor
    const result = inbox.handleNow(eventOf('one')).then((said) => [said, shared.claim('one', 'b', 1_000)])
    const call = await calls.next()
    call.finish(failed([]))
    open()
    expect(await result).toEqual(['failed', 'claimed'])
  })

  test('says in-progress while another machine handles the event, and duplicate afterwards', async () => {
    const first = machine()
    const second = machine(first.shared)
    const result = first.inbox.handleNow(eventOf('one'))
    const call = await first.calls.next()
    expect(await second.inbox.handleNow(eventOf('one'))).toBe('in-progress')
    call.finish()
    expect(await result).toBe('handled')
    expect(await second.inbox.handleNow(eventOf('one'))).toBe('duplicate')
  })

  test('says in-progress when its lease is lost while the event is handled, and logs that', async () => {
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] })
    onTestFinished(() => void vi.useRealTimers())
    const { store, intercept } = interceptedStore()
    const warn = vi.fn()
    const { inbox, calls } = open({ store, leaseMs: 3_000 }, { ...silent, warn })
    const result = inbox.handleNow(eventOf('one'))
    const call = await calls.next()
    intercept.renew = async () => false
    await vi.advanceTimersByTimeAsync(1_000)
    expect(await result).toBe('in-progress')
    expect(call.attempt.aborted).toBe(true)
    expect(warn.mock.calls).toEqual([[{ key: 'one' }, expect.stringContaining('another process handles it')]])
    expect(inbox.stats()).toMatchObject({ running: 0 })
  })

  test('says duplicate to every caller that waits for a claim of a handled event', async () => {
    const { inbox, intercept, shared } = machine()
    shared.claim('one', 'b', 1_000)
    shared.complete('one', 'b')
    const { open, interceptor } = gate()
    intercept.claim = interceptor
    const results = [inbox.handleNow(eventOf('one')), inbox.handleNow(eventOf('one'))]
    open()
    expect(await Promise.all(results)).toEqual(['duplicate', 'duplicate'])
  })

  test('rejects for every caller when the claim fails, and handles the event when it arrives again', async () => {
    const { inbox, calls, intercept } = machine()
    intercept.claim = answerLost
    const results = [inbox.handleNow(eventOf('one')), inbox.handleNow(eventOf('one'))]
    for (const result of results) await expect(result).rejects.toThrow(withCode('unavailable'))
    delete intercept.claim
    const again = inbox.handleNow(eventOf('one'))
    const call = await calls.next()
    call.finish()
    expect(await again).toBe('handled')
  })

  test('handles a failed event whose claim could not be released, once that claim has run out', async () => {
    let clock = 1
    const { inbox, calls, intercept } = machine(lruStore({ now: () => clock }))
    const first = inbox.handleNow(eventOf('one'))
    const call = await calls.next()
    intercept.release = down
    call.finish(failed(['a']))
    expect(await first).toBe('failed')
    delete intercept.release
    expect(await inbox.handleNow(eventOf('one'))).toBe('in-progress')
    clock += 5_001
    const second = inbox.handleNow(eventOf('one'))
    const again = await calls.next()
    expect(again.attempt.completed).toEqual(['a'])
    again.finish()
    expect(await second).toBe('handled')
  })

  test('says overloaded when the inbox is full, and rejects while it closes', async () => {
    const { inbox } = open({ maxWaiting: 1 })
    void inbox.handleNow(eventOf('one'))
    expect(await inbox.handleNow(eventOf('two'))).toBe('overloaded')
    void inbox.close({ timeoutMs: 1 })
    await expect(inbox.handleNow(eventOf('three'))).rejects.toThrow(withCode('closing'))
  })

  test('says closing when closing cuts it short', async () => {
    const { inbox, calls } = machine()
    const result = inbox.handleNow(eventOf('one'))
    await calls.next()
    const { unfinished } = await inbox.close({ timeoutMs: 1 })
    expect(unfinished.length).toBe(1)
    expect(await result).toBe('closing')
  })

  test('keeps the order of the events of one media item', async () => {
    const { inbox, calls } = machine()
    const results = ['1', '2'].map((key) => inbox.handleNow(eventOf(key, 'media')))
    const first = await calls.next()
    expect(first.event.key).toBe('1')
    expect(inbox.stats()).toMatchObject({ running: 1, waiting: 1 })
    first.finish()
    const second = await calls.next()
    second.finish()
    expect(await Promise.all(results)).toEqual(['handled', 'handled'])
  })
})
