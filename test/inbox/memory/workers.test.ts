import { beforeEach, describe, expect, test, vi } from 'vitest'
import type { defineStore as Define } from '../../../src/idempotency/define-store.ts'
import type { lruStore as Lru } from '../../../src/idempotency/lru.ts'
import type { StoreSteps } from '../../../src/idempotency/store.ts'
import type { AttemptResult, Inbox } from '../../../src/inbox/inbox.ts'
import type { memoryInbox as Memory, MemoryInboxOptions } from '../../../src/inbox/memory.ts'
import { asOnWorkers } from '../../support/as-on-workers.ts'
import { eventOf, openInbox } from '../../support/inbox.ts'
import { block } from '../../support/suspend.ts'

// Work that a request of Workers has begun ends with it. These tests clear its timers, and its promises never settle.

const leaseMs = 3_000
const never = () => new Promise<never>(() => {})
const failed = (completed: string[] = []): AttemptResult => ({ status: 'dead', completed, failures: [] })

let memoryInbox: typeof Memory
let defineStore: typeof Define
let lruStore: typeof Lru
asOnWorkers({ fakeTime: true })
beforeEach(async () => {
  memoryInbox = (await import('../../../src/inbox/memory.ts')).memoryInbox
  defineStore = (await import('../../../src/idempotency/define-store.ts')).defineStore
  lruStore = (await import('../../../src/idempotency/lru.ts')).lruStore
})

function opened(store?: MemoryInboxOptions['store']) {
  const { inbox, calls } = openInbox(memoryInbox({ leaseMs, ...(store && { store }) }))
  return { inbox: inbox as Required<Inbox>, calls }
}

/** A store in another place, whose steps can be replaced for one call. Its leases run out by the fake clock. */
function sharedStore() {
  const { claims: _, isLocal: __, ...steps } = lruStore({ now: Date.now })
  const spied = {
    claim: vi.fn<StoreSteps['claim']>(async (...args) => steps.claim(...args)),
    renew: vi.fn<StoreSteps['renew']>(async (...args) => steps.renew(...args)),
    complete: vi.fn<StoreSteps['complete']>(async (...args) => steps.complete(...args)),
    release: vi.fn<StoreSteps['release']>(async (...args) => steps.release(...args)),
  }
  return { steps: spied, store: defineStore(spied) }
}

const passing = (ms: number) => vi.advanceTimersByTimeAsync(ms)

/** Cuts off every request. */
const cutOff = () => vi.clearAllTimers()

describe.each([
  ['in the isolate', () => undefined],
  ['of an lruStore', () => lruStore()],
  ['that isolates share', () => sharedStore().store],
])('on Workers, with keys %s,', (_, store) => {
  test('an event is handled once, in its own request', async () => {
    const { inbox, calls } = opened(store())
    const handled = inbox.handleNow(eventOf('one'))
    ;(await calls.next()).finish()
    expect(await handled).toBe('handled')
    expect(await inbox.handleNow(eventOf('one'))).toBe('duplicate')
    expect(vi.getTimerCount()).toBe(0)
  })

  test('no event waits for another one, also of the same media item', async () => {
    const { inbox, calls } = opened(store())
    for (let i = 0; i < 20; i++) void inbox.handleNow(eventOf(`${i}`, 'media'))
    for (let i = 0; i < 20; i++) await calls.next()
    expect(inbox.stats()).toMatchObject({ running: 20, waiting: 0 })
  })

  test('an event is in progress for as long as its handlers run', async () => {
    const { inbox, calls } = opened(store())
    const handled = inbox.handleNow(eventOf('one'))
    const call = await calls.next()
    await passing(10 * leaseMs)
    expect(await inbox.handleNow(eventOf('one'))).toBe('in-progress')
    expect(call.attempt.aborted).toBe(false)
    call.finish()
    expect(await handled).toBe('handled')
  })

  test('an event whose request was cut off is handled again a lease later', async () => {
    const { inbox, calls } = opened(store())
    void inbox.handleNow(eventOf('one'))
    const lost = await calls.next()
    cutOff()
    expect(await inbox.handleNow(eventOf('one'))).toBe('in-progress')
    await passing(leaseMs)
    const handled = inbox.handleNow(eventOf('one'))
    await passing(2)
    expect(lost.attempt.aborted).toBe(true)
    ;(await calls.next()).finish()
    expect(await handled).toBe('handled')
    expect(inbox.stats()).toMatchObject({ running: 0 })
  })

  test('the attempts of requests that were cut off are forgotten', async () => {
    const { inbox, calls } = opened(store())
    for (let i = 0; i < 5; i++) void inbox.handleNow(eventOf(`lost ${i}`))
    for (let i = 0; i < 5; i++) await calls.next()
    cutOff()
    await passing(leaseMs)
    expect(inbox.stats()).toMatchObject({ running: 0 })
    void inbox.handleNow(eventOf('next'))
    await passing(2 * 5)
    await calls.next()
    expect(inbox.stats()).toMatchObject({ running: 1 })
  })

  test('the retry of an event that failed leaves out the handlers that succeeded', async () => {
    const { inbox, calls } = opened(store())
    const first = inbox.handleNow(eventOf('one'))
    ;(await calls.next()).finish(failed(['a']))
    expect(await first).toBe('failed')
    void inbox.handleNow(eventOf('one'))
    expect((await calls.next()).attempt).toMatchObject({ number: 2, completed: ['a'] })
  })

  test('closing tells what is left', async () => {
    const { inbox, calls } = opened(store())
    void inbox.handleNow(eventOf('one'))
    await calls.next()
    const { unfinished } = await inbox.close()
    expect(unfinished.map(({ event, state }) => [event.key, state])).toEqual([['one', 'running']])
  })
})

test('on Workers, an event stays with its request when the process was suspended beyond the lease', async () => {
  vi.useRealTimers()
  const { inbox, calls } = openInbox(memoryInbox({ leaseMs: 60 }))
  const handled = inbox.handleNow?.(eventOf('one'))
  const call = await calls.next()
  block(90)
  expect(await inbox.handleNow?.(eventOf('one'))).toBe('in-progress')
  expect(call.attempt.aborted).toBe(false)
  call.finish()
  expect(await handled).toBe('handled')
  expect(await inbox.handleNow?.(eventOf('one'))).toBe('duplicate')
})

describe('on Workers, with a shared store,', () => {
  test('an event whose request was cut off during its claim is claimed again a lease later', async () => {
    const { store, steps } = sharedStore()
    const { inbox, calls } = opened(store)
    steps.claim.mockImplementationOnce(never)
    void inbox.handleNow(eventOf('one'))
    await passing(0)
    cutOff()
    expect(await inbox.handleNow(eventOf('one'))).toBe('in-progress')
    await passing(leaseMs)
    void inbox.handleNow(eventOf('one'))
    await passing(2)
    expect((await calls.next()).event.key).toBe('one')
  })

  test('each request renews its own claim, while others are cut off', async () => {
    const { store, steps } = sharedStore()
    const { inbox, calls } = opened(store)
    void inbox.handleNow(eventOf('lost'))
    await calls.next()
    cutOff()
    void inbox.handleNow(eventOf('one'))
    await calls.next()
    await passing(3 * leaseMs)
    const renewed = new Set(steps.renew.mock.calls.map(([key]) => key))
    expect(renewed).toEqual(new Set(['one']))
    expect(await store.claim('one', 'another isolate', leaseMs)).toBe('in-progress')
  })

  test('an event that another isolate has, or has handled, is left to it', async () => {
    const { store } = sharedStore()
    await store.claim('one', 'another isolate', leaseMs)
    const { inbox } = opened(store)
    expect(await inbox.handleNow(eventOf('one'))).toBe('in-progress')
    await store.complete('one', 'another isolate')
    expect(await inbox.handleNow(eventOf('one'))).toBe('duplicate')
  })

  test('an attempt whose lease was lost is aborted, and releases nothing of the new owner', async () => {
    const { store, steps } = sharedStore()
    const { inbox, calls } = opened(store)
    const result = inbox.handleNow(eventOf('one'))
    const call = await calls.next()
    steps.renew.mockResolvedValueOnce(false)
    await passing(leaseMs / 3)
    expect(call.attempt.signal.reason).toMatchObject({ code: 'lease_lost' })
    call.finish({ status: 'retry', delayMs: 0, completed: [], failures: [] })
    expect(await result).toBe('in-progress')
    expect(steps.release).not.toHaveBeenCalled()
  })

  test('an attempt of a request that goes on after all releases nothing of the one that replaced it', async () => {
    const { store } = sharedStore()
    const { inbox, calls } = opened(store)
    const late = inbox.handleNow(eventOf('one'))
    const replaced = await calls.next()
    cutOff()
    await passing(leaseMs)
    void inbox.handleNow(eventOf('one'))
    await passing(2)
    await calls.next()
    replaced.finish(failed())
    expect(await late).toBe('in-progress')
    expect(await store.claim('one', 'another isolate', leaseMs)).toBe('in-progress')
  })

  test('an outage of the store is no success', async () => {
    const { store, steps } = sharedStore()
    steps.claim.mockRejectedValueOnce(new Error('connection refused'))
    const { inbox } = opened(store)
    await expect(inbox.handleNow(eventOf('one'))).rejects.toMatchObject({ code: 'unavailable' })
    expect(inbox.stats()).toMatchObject({ running: 0 })
  })
})

test('a receiver with a memory inbox needs ack handled on Workers, whatever it is told', async () => {
  const { createReceiver, unverified } = await import('../../../src/index.ts')
  const fix = "use durableObjectInbox, or queueInbox with Cloudflare Queues, or ack: 'handled'"
  for (const platform of [undefined, 'server'] as const)
    expect(() => createReceiver({ verify: unverified(), ...(platform && { platform }) })).toThrow(
      `Cloudflare Workers stops an instance after its answer, and memoryInbox loses events it has acknowledged: ${fix}`,
    )
})
