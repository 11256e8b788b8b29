import { beforeEach, describe, expect, test, vi } from 'vitest'
import type { defineStore as Define } from '../../src/idempotency/define-store.ts'
import type { StoreSteps } from '../../src/idempotency/store.ts'
import type { memoryInbox as Memory, MemoryInboxOptions } from '../../src/inbox/memory.ts'
import { asOnWorkers } from '../support/as-on-workers.ts'
import { eventOf, openInbox } from '../support/inbox.ts'

// Work that a request of Workers has begun ends with it. These tests clear its timers, and its promises never settle.

const never = () => new Promise<never>(() => {})
const waitUntil = () => {}

let memoryInbox: typeof Memory
let defineStore: typeof Define
asOnWorkers({ fakeTime: true })
beforeEach(async () => {
  memoryInbox = (await import('../../src/inbox/memory.ts')).memoryInbox
  defineStore = (await import('../../src/idempotency/define-store.ts')).defineStore
})

/** Opens an inbox over a store in another place, whose steps can be replaced for one call. */
function opened(options: Omit<MemoryInboxOptions, 'store'> = {}) {
  const owners = new Map<string, string>()
  const steps = {
    claim: vi.fn<StoreSteps['claim']>(async (key, owner) => {
      if (owners.has(key)) return owners.get(key) === 'done' ? 'done' : 'in-progress'
      owners.set(key, owner)
      return 'claimed'
    }),
    renew: vi.fn<StoreSteps['renew']>(async (key, owner) => owners.get(key) === owner),
    complete: vi.fn<StoreSteps['complete']>(async (key, owner) => {
      if (owners.get(key) !== owner) return false
      owners.set(key, 'done')
      return true
    }),
    release: vi.fn<StoreSteps['release']>(async (key, owner) => owners.get(key) === owner && owners.delete(key)),
  }
  return { ...openInbox(memoryInbox({ ...options, store: defineStore(steps) })), owners, steps }
}

const passing = (ms: number) => vi.advanceTimersByTimeAsync(ms)

/** Ends every request: none of its timers fires. */
async function endRequests(): Promise<void> {
  vi.clearAllTimers()
  await passing(31_000)
}

describe('on Workers, with a shared store', () => {
  test('the duplicate of a delivery whose claim ended with its request does not wait for it for long', async () => {
    const { inbox, steps } = opened()
    steps.claim.mockImplementationOnce(never)
    void inbox.accept(eventOf('one'), { waitUntil })
    vi.clearAllTimers()
    const duplicate = expect(inbox.accept(eventOf('one'), { waitUntil })).rejects.toMatchObject({ code: 'in_progress' })
    await passing(1_100)
    await duplicate
  })

  test('a later delivery claims again, when the lease of a claim that was carried out has run out', async () => {
    const { inbox, calls, owners, steps } = opened()
    steps.claim.mockImplementationOnce((key, owner) => {
      owners.set(key, owner)
      return never()
    })
    void inbox.accept(eventOf('one'), { waitUntil })
    vi.clearAllTimers()
    await passing(5_100)
    owners.clear()
    expect(await inbox.accept(eventOf('one'), { waitUntil })).toBe('accepted')
    await passing(5)
    expect((await calls.next()).event.key).toBe('one')
  })

  test('a claim that ended with its request gives its place back', async () => {
    const { inbox, steps } = opened({ maxWaiting: 1 })
    steps.claim.mockImplementationOnce(never)
    void inbox.accept(eventOf('lost'))
    await endRequests()
    expect(await inbox.accept(eventOf('next'), { waitUntil })).toBe('accepted')
  })

  test('each request renews the claim of its own event, while other requests end', async () => {
    const { inbox, calls, steps } = opened({ leaseMs: 3_000 })
    await inbox.accept(eventOf('ended'))
    // Its heartbeat ends with it.
    vi.clearAllTimers()
    await inbox.accept(eventOf('one', 'another media item'), { waitUntil })
    await passing(10)
    await calls.next()
    steps.renew.mockClear()
    await passing(9_000)
    expect(steps.renew.mock.calls.filter(([key]) => key === 'one').length).toBeGreaterThanOrEqual(8)
  })

  test('an event is handled in another request only once its claim is renewed', async () => {
    const { inbox, calls, steps } = opened()
    await inbox.accept(eventOf('one'))
    await endRequests()
    let renewed = (_: boolean) => {}
    steps.renew.mockImplementation(
      () =>
        new Promise((resolve) => {
          renewed = resolve
        }),
    )
    await inbox.accept(eventOf('two', 'another media item'), { waitUntil })
    await passing(10)
    expect((await calls.next()).event.key).toBe('two')
    expect(inbox.stats()).toMatchObject({ running: 2 })
    renewed(true)
    await passing(10)
    expect((await calls.next()).event.key).toBe('one')
  })

  test('an event that another isolate has claimed meanwhile is left to it', async () => {
    const { inbox, calls, owners } = opened()
    await inbox.accept(eventOf('one'))
    await endRequests()
    owners.set('one', 'another isolate')
    await inbox.accept(eventOf('two', 'another media item'), { waitUntil })
    await passing(10)
    expect((await calls.next()).event.key).toBe('two')
    await passing(100)
    expect(inbox.stats()).toMatchObject({ running: 1, waiting: 0 })
  })

  test('an event that failed is answered without waiting for its release, which may end with its request', async () => {
    const { inbox, calls, steps } = opened()
    const result = inbox.handleNow?.(eventOf('one'))
    await passing(5)
    steps.release.mockImplementation(never)
    ;(await calls.next()).finish({ status: 'retry', delayMs: 0, completed: [], failures: [] })
    expect(await result).toBe('failed')
    expect(inbox.stats()).toMatchObject({ running: 0 })
  })

  test('a completion that ended with its request is made again with the next delivery', async () => {
    const { inbox, calls, owners, steps } = opened()
    await inbox.accept(eventOf('one'), { waitUntil })
    await passing(5)
    steps.complete.mockImplementationOnce(never)
    ;(await calls.next()).finish()
    await passing(5)
    await endRequests()
    expect(owners.get('one')).not.toBe('done')
    await inbox.accept(eventOf('two'), { waitUntil })
    await passing(5)
    expect(owners.get('one')).toBe('done')
    expect(inbox.stats()).toMatchObject({ running: 1 })
  })
})
