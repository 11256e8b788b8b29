import { beforeEach, expect, test, vi } from 'vitest'
import type { defineStore as Define } from '../../../src/idempotency/define-store.ts'
import { lruStore } from '../../../src/idempotency/lru.ts'
import type { queueInbox as Queue } from '../../../src/inbox/queue.ts'
import { asOnWorkers } from '../../support/as-on-workers.ts'
import { openInbox } from '../../support/inbox.ts'
import { messageOf } from './queue-process.ts'

// Work that a request of Workers has begun ends with it. These tests clear its timers, and its promises never settle.

const leaseMs = 30_000

let queueInbox: typeof Queue
let defineStore: typeof Define
asOnWorkers({ fakeTime: true })
beforeEach(async () => {
  queueInbox = (await import('../../../src/inbox/queue.ts')).queueInbox
  defineStore = (await import('../../../src/idempotency/define-store.ts')).defineStore
})

/** Opens an inbox over a store in another place. */
function opened() {
  const { claims: _, ...steps } = lruStore({ now: Date.now })
  const store = defineStore({ ...steps, claim: async (...args) => steps.claim(...args) })
  const { inbox, calls } = openInbox(queueInbox({ send() {}, store, leaseMs }))
  return { calls, handle: async (message: unknown) => inbox.handleMessage?.(message) }
}

test('An event whose request was ended is handled by the same isolate, once its lease has run out', async () => {
  const { handle, calls } = opened()
  const message = await messageOf()
  void handle(message)
  await calls.next()
  vi.clearAllTimers()
  expect((await handle(message))?.status).toBe('retry')
  await vi.advanceTimersByTimeAsync(leaseMs)
  const handled = handle(message)
  await vi.advanceTimersByTimeAsync(2)
  const call = await calls.next()
  call.finish()
  expect(await handled).toEqual({ status: 'done' })
})

test('An event that is being handled is not handled by another request of the isolate, however long it runs', async () => {
  const { handle, calls } = opened()
  const message = await messageOf()
  const handled = handle(message)
  const call = await calls.next()
  await vi.advanceTimersByTimeAsync(3 * leaseMs)
  expect((await handle(message))?.status).toBe('retry')
  call.finish()
  expect(await handled).toEqual({ status: 'done' })
})
