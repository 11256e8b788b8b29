import { expect, test, vi } from 'vitest'
import type { InboxHost } from '../../../src/inbox/inbox.ts'
import type { ClaimResult, EventStore } from '../../../src/inbox/sql/store.ts'
import type { SqlTables } from '../../../src/inbox/sql/tables.ts'
import { SqlWorker } from '../../../src/inbox/sql/worker.ts'
import { eventOf } from '../../support/inbox.ts'
import { recordingLogger } from '../../support/recording-logger.ts'

/** Starts a worker over a store that answers claims with the results of a function. */
async function workerOver(
  claim: () => Promise<ClaimResult | undefined>,
  handle: InboxHost['handle'] = async () => done,
) {
  const { logger, lines } = recordingLogger()
  const store = {
    holds: true,
    claimSize: 4,
    readAhead: 4,
    maxUnrecorded: 4,
    pollMs: 60_000,
    isQuiet: false,
    isNotified: true,
    isTransient: () => true,
    widenNextClaim() {},
    claim: vi.fn(claim),
    keepOnly: vi.fn(async () => {}),
    settle: async () => true,
    async begin() {},
    async end() {},
  }
  const host = { logger, handle, handlersOf: () => [] } as unknown as InboxHost
  const worker = new SqlWorker({ store: store as unknown as EventStore, host, concurrency: 2 })
  await worker.start({ heard() {}, lost() {} }, {} as SqlTables)
  return { worker, store, lines }
}

const done = { status: 'done' } as const
const turn = () => new Promise((resolve) => setImmediate(resolve))
const nothing: ClaimResult = { events: [], hasMore: false, nextInMs: Number.POSITIVE_INFINITY }

test('claims nothing more once the lease is over', async () => {
  const { worker, store } = await workerOver(async () => {
    await turn()
    store.holds = false
    return undefined
  })
  for (let turns = 0; turns < 20; turns++) await turn()
  expect(store.claim).toHaveBeenCalledTimes(1)
  worker.stopStarting()
})

test('is quiet only while it claims, and hears of the next event', async () => {
  const { worker, store } = await workerOver(async () => nothing)
  const isQuiet = () => worker.isQuiet
  expect(isQuiet()).toBe(false)
  store.isQuiet = true
  expect(isQuiet()).toBe(true)
  store.isNotified = false
  expect(isQuiet()).toBe(false)
  store.isNotified = true
  worker.applyPauses([{ since: new Date() }])
  expect(isQuiet()).toBe(false)
  worker.applyPauses([])
  expect(isQuiet()).toBe(true)
  worker.stopStarting()
})

test('claims again once a suspect has ended, since the next one waits for that', async () => {
  let end = () => {}
  const accepted = eventOf('suspect')
  const suspect = { id: 1, releases: 0, accepted, attempts: 0, completed: [], crashes: 1, size: 1 }
  const answers: ClaimResult[] = [{ ...nothing, events: [suspect] }]
  const { worker, store } = await workerOver(
    async () => answers.shift() ?? nothing,
    () => new Promise((resolve) => (end = () => resolve(done))),
  )
  await expect.poll(() => store.claim.mock.calls.length).toBe(2)
  await turn()
  end()
  await expect.poll(() => store.claim.mock.calls.length, { timeout: 5_000 }).toBe(3)
  worker.stopStarting()
})

test('gives up what a claim may have claimed whose answer was lost, before the next claim', async () => {
  const answers = [() => Promise.resolve(undefined), () => Promise.reject(new Error('cut off'))]
  const { worker, store } = await workerOver(async () => {
    await turn()
    return (answers.shift() ?? (async () => nothing))()
  })
  await expect.poll(() => store.claim.mock.calls.length).toBe(3)
  expect(store.keepOnly).toHaveBeenCalledTimes(2)
  worker.stopStarting()
})

test('logs the third failure in a row that passes, and none before', async () => {
  let failures = 2
  const { worker, store, lines } = await workerOver(async () => {
    if (failures-- > 0) throw new Error('cut off')
    return nothing
  })
  await expect.poll(() => store.claim.mock.calls.length).toBe(3)
  expect(lines).toEqual([])
  failures = 2
  worker.wake()
  await expect.poll(() => store.claim.mock.calls.length).toBe(6)
  expect(lines).toEqual([])
  failures = 4
  worker.wake()
  await expect.poll(() => store.claim.mock.calls.length).toBe(11)
  expect(lines).toMatchObject([{ level: 'warn', message: expect.stringContaining('will retry') }])
  worker.stopStarting()
})
