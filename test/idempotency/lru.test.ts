import { describe, expect, test } from 'vitest'
import { type LruStoreOptions, lruStore } from '../../src/idempotency/lru.ts'
import type { Inbox } from '../../src/inbox/inbox.ts'
import { memoryInbox } from '../../src/inbox/memory.ts'
import { eventOf, openInbox } from '../support/inbox.ts'

/** Makes a store with a clock of its own. The clock starts above 0, which lru-cache takes for "no time to live". */
function storeOnClock(options: Omit<LruStoreOptions, 'now'> = {}) {
  let time = 1
  const store = lruStore({ ...options, now: () => time })
  const finish = (key: string) => {
    store.claim(key, 'a', 1_000)
    store.complete(key, 'a')
  }
  const advance = (ms: number) => {
    time += ms
  }
  return { store, finish, advance }
}

describe('the lru store', () => {
  test('forgets the finished key that was seen longest ago when it holds more than max', () => {
    const { store, finish } = storeOnClock({ max: 2 })
    finish('first')
    finish('second')
    expect(store.claim('first', 'b', 1_000)).toBe('done')
    finish('third')
    expect(store.claim('first', 'b', 1_000)).toBe('done')
    expect(store.claim('third', 'b', 1_000)).toBe('done')
    expect(store.claim('second', 'b', 1_000)).toBe('claimed')
  })

  test('remembers a finished key for ttlMs, however often it is seen', () => {
    const { store, finish, advance } = storeOnClock({ ttlMs: 10_000 })
    finish('key')
    advance(9_000)
    expect(store.claim('key', 'b', 1_000)).toBe('done')
    advance(1_001)
    expect(store.claim('key', 'b', 1_000)).toBe('claimed')
  })

  test('remembers a key that its owner finishes again, after a replay, for ttlMs from then on', () => {
    const { store, finish, advance } = storeOnClock({ ttlMs: 10_000 })
    finish('key')
    advance(9_000)
    expect(store.complete('key', 'b')).toBe(false)
    expect(store.complete('key', 'a')).toBe(true)
    advance(9_000)
    expect(store.claim('key', 'b', 1_000)).toBe('done')
    advance(1_001)
    expect(store.claim('key', 'b', 1_000)).toBe('claimed')
  })

  test('remembers 100,000 keys for 24 hours by default', () => {
    const { store, finish, advance } = storeOnClock()
    for (let i = 0; i <= 100_000; i++) finish(`key-${i}`)
    advance(86_400_000 - 1)
    expect(store.claim('key-1', 'b', 1_000)).toBe('done')
    expect(store.claim('key-0', 'b', 1_000)).toBe('claimed')
    advance(2)
    expect(store.claim('key-100000', 'b', 1_000)).toBe('claimed')
  })

  test('never evicts a claim in progress, even with room for one finished key and thousands of others', () => {
    const { store, finish } = storeOnClock({ max: 1 })
    const keys = Array.from({ length: 5_000 }, (_, i) => `key-${i}`)
    for (const key of keys) expect(store.claim(key, 'a', 60_000)).toBe('claimed')
    for (let i = 0; i < 5_000; i++) finish(`other-${i}`)
    for (const key of keys) expect(store.claim(key, 'b', 60_000)).toBe('in-progress')
    for (const key of keys) expect(store.complete(key, 'a')).toBe(true)
    expect(store.claim('key-4999', 'b', 60_000)).toBe('done')
  })

  test('answers immediately, without a promise', () => {
    const { store } = storeOnClock()
    expect(store.claim('key', 'a', 1_000)).toBe('claimed')
    expect(store.renew('key', 'a', 1_000)).toBe(true)
    expect(store.complete('key', 'a')).toBe(true)
    expect(store.release('key', 'a')).toBe(false)
  })

  test.each([0, -1, Number.NaN, Number.POSITIVE_INFINITY])('throws for %s as max or ttlMs', (value) => {
    const invalid = expect.objectContaining({ code: 'invalid_option' })
    expect(() => lruStore({ max: value })).toThrow(invalid)
    expect(() => lruStore({ ttlMs: value })).toThrow(invalid)
  })
})

describe('inboxes that share an lru store', () => {
  const leaseMs = 3_000
  const accept = async (inbox: Inbox) => inbox.accept(eventOf('one'))

  /** Opens two inboxes over one store, whose clock the test moves. */
  function twoInboxes() {
    const clock = { now: 1 }
    const store = lruStore({ now: () => clock.now })
    const open = () => openInbox(memoryInbox({ store, leaseMs }))
    return { clock, first: open(), second: open() }
  }

  test('handle an event once, however long its handler runs', async () => {
    const { clock, first, second } = twoInboxes()
    expect(await accept(first.inbox)).toBe('accepted')
    const call = await first.calls.next()
    clock.now += leaseMs * 100
    await expect(accept(second.inbox)).rejects.toMatchObject({ code: 'in_progress' })
    expect(call.attempt.aborted).toBe(false)
    call.finish()
    await first.inbox.close()
    expect(await accept(second.inbox)).toBe('duplicate')
  })

  test('take over an unfinished event of a closed inbox after leaseMs, and not before', async () => {
    const { clock, first, second } = twoInboxes()
    await accept(first.inbox)
    const hanging = await first.calls.next()
    clock.now += leaseMs * 100
    await first.inbox.close({ timeoutMs: 1 })
    clock.now += leaseMs - 1
    await expect(accept(second.inbox)).rejects.toMatchObject({ code: 'in_progress' })
    clock.now += 2
    expect(await accept(second.inbox)).toBe('accepted')
    // The handler that was given up ends late, and records nothing.
    hanging.finish()
    expect(await accept(first.inbox).catch(({ code }) => code)).toBe('closing')
    const call = await second.calls.next()
    call.finish()
    expect(await second.inbox.close()).toEqual({ unfinished: [] })
  })

  test('accept an event whose handler failed under handleNow in another inbox', async () => {
    const { first, second } = twoInboxes()
    const failed = (first.inbox as Required<Inbox>).handleNow(eventOf('one'))
    const call = await first.calls.next()
    call.finish({ status: 'dead', completed: [], failures: [] })
    expect(await failed).toBe('failed')
    expect(await accept(second.inbox)).toBe('accepted')
  })
})

describe('the options of the lru store', () => {
  test.each([
    [{ ttlMs: 0 }, 'lruStore: ttlMs must be a whole number'],
    [{ max: 0 }, 'lruStore: max must be a whole number'],
    [{ maximum: 1 }, 'lruStore: there is no option maximum'],
  ])('cannot be %o', (options, message) => {
    expect(() => lruStore(options as LruStoreOptions)).toThrow(message)
  })

  test('need no clock', async () => {
    const store = lruStore({ max: 1, ttlMs: 20 })
    store.claim('one', 'a', 1_000)
    store.complete('one', 'a')
    expect(store.claim('one', 'b', 1_000)).toBe('done')
    await new Promise((resolve) => setTimeout(resolve, 40))
    expect(store.claim('one', 'b', 1_000)).toBe('claimed')
  })
})
