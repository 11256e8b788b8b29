import { setImmediate as nextTurn, setTimeout as sleep } from 'node:timers/promises'
import { describe, expect, onTestFinished, test, vi } from 'vitest'
import { sqliteInbox } from '../../src/inbox/sqlite.ts'
import { createReceiver, type InboxDefinition, memoryInbox, type Receiver, unverified } from '../../src/index.ts'
import { deliver, samplePayload } from '../../src/testing/index.ts'
import { silent } from '../support/silent.ts'
import { crashed, freshPath } from './sqlite/sqlite-tests.ts'

/** Opens an inbox with a limited handler and a free one, and notes the runs of each. */
function open(inbox: InboxDefinition, limit: { concurrency?: number; rate?: '10/s' | '20/s' | '1/h' | '500/s' }) {
  const limited: { mediaId: string; attempt: number; at: number }[] = []
  const free: string[] = []
  const receiver = createReceiver({ verify: unverified(), inbox, logger: silent, retry: { attempts: 1 } })
  receiver.on(
    'encoding.finished',
    ({ mediaId }, { attempt }) => void limited.push({ mediaId, attempt, at: performance.now() }),
    { name: 'limited', ...limit },
  )
  receiver.on('file.received', ({ mediaId }) => void free.push(mediaId), { name: 'free' })
  onTestFinished(async () => void (await receiver.close({ timeoutMs: 0 })))
  return { receiver, limited, free, mediaIds: () => limited.map(({ mediaId }) => mediaId) }
}

const names = (what: string, count: number) => Array.from({ length: count }, (_, number) => `${what} ${number}`)

const sendAll = (receiver: Receiver, type: 'encoding.finished' | 'file.received', mediaIds: readonly string[]) =>
  Promise.all(mediaIds.map((media_id) => deliver(receiver, samplePayload(type, { media_id }))))

describe.each<[string, () => Promise<InboxDefinition>]>([
  ['memoryInbox', async () => memoryInbox()],
  ['sqliteInbox', async () => sqliteInbox({ path: await freshPath() })],
])('%s', (_, definition) => {
  test('keeps a rate in real time, and handles the other events meanwhile', async () => {
    const { receiver, limited, free } = open(await definition(), { rate: '20/s' })
    const startedAt = performance.now()
    await sendAll(receiver, 'encoding.finished', names('limited', 100))
    await sendAll(receiver, 'file.received', names('free', 1_000))
    await vi.waitUntil(() => free.length === 1_000, { timeout: 60_000, interval: 1 })
    expect(limited.length).toBeLessThanOrEqual(1 + (performance.now() - startedAt + 20) / 50)
    await vi.waitUntil(() => limited.length >= 50, { timeout: 60_000, interval: 1 })
    const at = limited.map((run) => run.at)
    // The handler reads the clock after the limiter.
    for (const from of at) expect(at.filter((each) => each >= from && each < from + 995).length).toBeLessThanOrEqual(20)
    expect(await receiver.inbox.stats()).toMatchObject({ deadLetters: 0 })
    const { unfinished } = await receiver.close({ timeoutMs: 0 })
    expect(limited.length + unfinished.length).toBe(100)
    expect(new Set(unfinished.map(({ state }) => state))).toEqual(new Set(['waiting']))
  })
})

describe('An event that waits for the limit of its handler', () => {
  test('is handled by the next process once, in its first attempt, after a close', async () => {
    const path = await freshPath()
    const first = open(sqliteInbox({ path }), { rate: '1/h' })
    await sendAll(first.receiver, 'encoding.finished', names('limited', 20))
    await vi.waitUntil(() => first.limited.length === 1)
    const { unfinished } = await first.receiver.close()
    expect(unfinished).toHaveLength(19)
    const second = open(sqliteInbox({ path }), { rate: '500/s' })
    await vi.waitUntil(() => second.limited.length === 19, { timeout: 10_000 })
    expect([...first.limited, ...second.limited].map(({ attempt }) => attempt)).toEqual(Array(20).fill(1))
    expect(new Set([...first.mediaIds(), ...second.mediaIds()]).size).toBe(20)
  })

  test('is handled after a crash, and so are the events of other handlers, which do not wait for it', async () => {
    const path = await freshPath()
    const first = open(sqliteInbox({ path }), { rate: '1/h' })
    await sendAll(first.receiver, 'encoding.finished', names('limited', 200))
    await vi.waitUntil(() => first.limited.length === 1)
    // What is recorded is only as old as a delivery.
    await sendAll(first.receiver, 'file.received', ['last'])
    for (let crash = 0; crash < 2; crash++) {
      const again = open(sqliteInbox({ path: await crashed(path) }), { rate: '10/s' })
      await sendAll(again.receiver, 'file.received', names('free', 50))
      await vi.waitUntil(() => again.free.length >= 50, { timeout: 10_000, interval: 1 })
      expect(again.limited.length).toBeLessThan(50)
    }
    const last = open(sqliteInbox({ path: await crashed(path) }), { rate: '500/s' })
    await vi.waitUntil(() => new Set([...first.mediaIds(), ...last.mediaIds()]).size === 200, { timeout: 20_000 })
    expect(await last.receiver.inbox.deadLetters.list()).toEqual([])
  })

  test('goes back to the file while the inbox is paused, and is handled when it is resumed', async () => {
    const { receiver, limited, mediaIds } = open(sqliteInbox({ path: await freshPath() }), { rate: '20/s' })
    await sendAll(receiver, 'encoding.finished', names('limited', 20))
    await vi.waitUntil(() => limited.length >= 1)
    await receiver.inbox.pauses?.pause()
    await sleep(300)
    const before = limited.length
    await sleep(200)
    expect(limited).toHaveLength(before)
    expect(before).toBeLessThan(20)
    expect(await receiver.inbox.stats()).toMatchObject({ waiting: 20 - before, running: 0 })
    await receiver.inbox.pauses?.resume()
    await vi.waitUntil(() => limited.length === 20, { timeout: 10_000 })
    expect(new Set(mediaIds()).size).toBe(20)
    expect(limited.map(({ attempt }) => attempt)).toEqual(Array(20).fill(1))
  })

  test('is released at once when its handler is paused', async () => {
    const { receiver, limited } = open(sqliteInbox({ path: await freshPath() }), { rate: '1/h' })
    await sendAll(receiver, 'encoding.finished', names('limited', 5))
    await vi.waitUntil(() => limited.length === 1)
    await receiver.inbox.pauses?.pause({ handler: 'limited' })
    await vi.waitUntil(async () => (await receiver.inbox.stats()).retrying === 4, { timeout: 10_000 })
    const record = (await receiver.inbox.events?.list({ state: 'retrying', limit: 500 }))?.events[0]
    expect([record?.attempts, record?.failedAttempts]).toEqual([0, []])
  })

  test('goes back to the file until its turn behind many others, so that later events of the file come', async () => {
    const { receiver, limited, free } = open(sqliteInbox({ path: await freshPath() }), { rate: '10/s' })
    await sendAll(receiver, 'encoding.finished', names('limited', 1_500))
    await sendAll(receiver, 'file.received', names('free', 500))
    await vi.waitUntil(() => free.length === 500, { timeout: 20_000, interval: 1 })
    await vi.waitUntil(async () => (await receiver.inbox.stats()).running === 0)
    const { waiting, retrying } = await receiver.inbox.stats()
    expect([waiting > 1_000, waiting + limited.length, retrying]).toEqual([true, 1_500, 0])
  })

  test('leaves its slot to other events, even if there is no other slot', async () => {
    const { receiver, limited, free } = open(memoryInbox({ concurrency: 1 }), { rate: '20/s' })
    for (let round = 0; round < 10; round++) {
      await sendAll(receiver, 'encoding.finished', [`limited ${round}`])
      await sendAll(receiver, 'file.received', [`free ${round}`])
      await nextTurn()
    }
    await vi.waitUntil(() => limited.length === 10, { timeout: 10_000 })
    expect(free).toHaveLength(10)
    expect(await receiver.inbox.stats()).toMatchObject({ waiting: 0, running: 0 })
  })
})
