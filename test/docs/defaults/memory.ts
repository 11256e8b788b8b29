import { lruStore } from '../../../src/idempotency/lru.ts'
import { redisStore } from '../../../src/idempotency/redis.ts'
import { memoryInbox } from '../../../src/inbox/memory.ts'
import { defineStore, type StoreSteps } from '../../../src/index.ts'
import { eventOf } from '../../support/inbox.ts'
import { untyped } from '../../support/untyped.ts'
import { elapsed, never, type Observations, required } from './elapsed.ts'
import { concurrencyOf, maxDeadLettersOf, maxWaitingOf, withOpen } from './inboxes.ts'

/** The lease with which an inbox claims an event in a shared store. */
async function leaseOfClaims(): Promise<number | undefined> {
  let lease: number | undefined
  const steps: StoreSteps = {
    claim(_key, _owner, leaseMs) {
      lease = leaseMs
      return 'claimed'
    },
    renew: () => true,
    complete: () => true,
    release: () => true,
  }
  await withOpen(memoryInbox({ store: defineStore(steps) }), async ({ inbox }) => inbox.accept(eventOf('one')))
  return lease
}

export const ofMemoryInbox: Observations = {
  // It forgets the finished key that was seen least recently when there is one more than the store keeps.
  store: () =>
    withOpen(memoryInbox(), async ({ inbox, calls }) => {
      calls.finishAll()
      await inbox.accept(eventOf('one'))
      await new Promise((resolve) => setTimeout(resolve, 5))
      return (await inbox.accept(eventOf('one'))) === 'duplicate' && 'lruStore()'
    }),
  concurrency: () => concurrencyOf(memoryInbox()),
  maxWaiting: () => maxWaitingOf(memoryInbox()),
  maxDeadLetters: () => maxDeadLettersOf(memoryInbox()),
  leaseMs: leaseOfClaims,
}

const hour = 3_600_000

export const ofLruStore: Observations = {
  max() {
    const store = lruStore()
    const count = 200_000
    for (let i = 0; i < count; i++) store.complete(`${i}`, 'a')
    let kept = 0
    while (kept < count && store.claim(`${count - 1 - kept}`, 'b', 1) === 'done') kept++
    return kept
  },
  ttlMs() {
    let time = 1_000
    const store = lruStore({ now: () => time })
    store.complete('key', 'a')
    const completedAt = time
    do time += hour
    while (store.claim('key', 'b', 1) === 'done')
    // It was forgotten between the last two looks.
    time -= hour
    while (store.claim('key', 'b', 1) === 'done') time += 1_000
    return time - completedAt
  },
}

/** The commands that a store sends to Redis when it completes a key. */
async function completed() {
  let sent: { key: string; ttlMs: number } | undefined
  const client = {
    status: 'ready',
    async eval(_script: string, _keys: number, key = '', _owner = '', ttlMs = '') {
      sent = { key, ttlMs: Number(ttlMs) }
      return 1
    },
  }
  await redisStore({ client }).complete('key', 'a')
  return sent
}

export const ofRedisStore: Observations = {
  client: () => required(() => redisStore(untyped({}))),
  prefix: async () => (await completed())?.key.replace(/key$/, ''),
  ttlMs: async () => (await completed())?.ttlMs,
  timeoutMs: () =>
    elapsed(async () => redisStore({ client: { status: 'connecting', eval: never } }).claim('k', 'a', 1)),
}
