import { expect, onTestFinished, test } from 'vitest'
import type { InboxHost } from '../../../src/inbox/inbox.ts'
import type { ClaimedEvent } from '../../../src/inbox/sql/event.ts'
import type { ClaimResult, EventStore, StoreListener } from '../../../src/inbox/sql/store.ts'
import type { SqlTables } from '../../../src/inbox/sql/tables.ts'
import { SqlWorker } from '../../../src/inbox/sql/worker.ts'
import { eventOf } from '../../../src/testing/contract/handling.ts'

const claimedEvent = (key: string, id: number): ClaimedEvent => ({
  id,
  releases: 0,
  accepted: eventOf(key, 'media'),
  attempts: 0,
  completed: [],
  crashes: 0,
  size: 1_000,
})

test('an event that is handed over during a claim runs behind the claimed ones of its media item', async () => {
  const handled: string[] = []
  const host: InboxHost = {
    async handle({ event }) {
      handled.push(event.key)
      return { status: 'done' }
    },
    handlersOf: () => ['a'],
    handlers: () => [],
    parse: () => {
      throw new Error('nothing is unreadable here')
    },
    logger: { debug() {}, info() {}, warn() {}, error() {} },
    observe() {},
  }
  const empty = { events: [], hasMore: false, nextInMs: Number.POSITIVE_INFINITY }
  let answer: ((claimed: ClaimResult) => void) | undefined
  let listener: StoreListener | undefined
  const store = {
    holds: true,
    claimSize: 16,
    readAhead: 100,
    maxUnrecorded: 64,
    pollMs: 60_000,
    isTransient: () => false,
    widenNextClaim() {},
    async begin(begun: StoreListener) {
      listener = begun
    },
    async claim() {
      if (answer !== undefined) return empty
      return new Promise<ClaimResult>((resolve) => {
        answer = resolve
      })
    },
    settle: async () => true,
    end: async () => {},
  } satisfies Partial<EventStore> as unknown as EventStore
  const worker = new SqlWorker({ store, host, concurrency: 4 })
  onTestFinished(() => worker.stopStarting())
  await worker.start({ heard() {}, lost() {} }, {} as SqlTables)
  await expect.poll(() => answer).toBeDefined()
  listener?.handOver(claimedEvent('two', 2))
  expect(worker.jobs.get('two')).toBeDefined()
  answer?.({ ...empty, events: [claimedEvent('one', 1)] })
  await expect.poll(() => handled).toEqual(['one', 'two'])
  listener?.handOver(claimedEvent('three', 3))
  await expect.poll(() => handled).toEqual(['one', 'two', 'three'])
})
