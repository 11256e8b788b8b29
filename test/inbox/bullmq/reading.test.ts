import { hostname } from 'node:os'
import { Queue } from 'bullmq'
import { describe, expect, onTestFinished, test, vi } from 'vitest'
import { type BullmqInboxOptions, bullmqInbox, openInboxQueue } from '../../../src/inbox/bullmq.ts'
import type { AcceptedEvent, AttemptResult } from '../../../src/inbox/inbox.ts'
import type { EventRecord } from '../../../src/inbox/reading.ts'
import { eventOf, openInbox, until } from '../../support/inbox.ts'
import { openWith } from '../../support/open-with.ts'
import { findRedis } from '../../support/redis/find-redis.ts'
import { redisTests } from '../../support/redis/redis-tests.ts'
import { silent } from '../../support/silent.ts'

const failures = [{ handler: 'b', message: 'Error: no' }]
const later: AttemptResult = { status: 'retry', delayMs: 60_000, completed: ['a'], failures }
const dead: AttemptResult = { status: 'dead', completed: ['a'], failures }
const keysOf = (records: readonly EventRecord[]) => records.map(({ key }) => key)

describe.skipIf(!findRedis())('reading a queue', () => {
  const redis = redisTests()

  const freshQueue = () => `queue ${crypto.randomUUID()}`
  const open = (queue: string, options: Partial<BullmqInboxOptions> = {}) => {
    const opened = openInbox(bullmqInbox({ connection: redis.server.url, queue, ...options }))
    onTestFinished(async () => {
      opened.calls.finishAll()
      await opened.inbox.close({ timeoutMs: 1_000 })
    })
    return opened
  }
  const look = async (queue: string) => {
    const opened = await vi.waitFor(() => openInboxQueue({ connection: redis.server.url, queue }))
    onTestFinished(() => opened.close())
    return opened
  }
  /** Opens a queue with many events that no process handles. */
  const withWaiting = async (
    count: number,
    change: (index: number) => Partial<AcceptedEvent['event']> = () => ({}),
  ) => {
    const queue = freshQueue()
    const { inbox } = open(queue, { handles: false })
    for (let index = 0; index < count; index++) {
      const { event, receivedAt } = eventOf(`key ${index}`)
      await inbox.accept({ event: { ...event, ...change(index) } as typeof event, receivedAt })
    }
    return { queue, inbox, reader: await look(queue) }
  }

  test('lists the events of more than one step in Redis in the order of their acceptance', async () => {
    const { reader } = await withWaiting(2_345, (index) => (index % 1_000 === 7 ? { mediaId: 'm"\\ü' } : {}))
    const newest = (await reader.events.list({ limit: 3_000 })).events
    expect(keysOf(newest)).toEqual(Array.from({ length: 2_345 }, (_, index) => `key ${2_344 - index}`))
    const { events, cursor } = await reader.events.list({ mediaId: 'm"\\ü', limit: 2 })
    expect(keysOf(events)).toEqual(['key 2007', 'key 1007'])
    const next = await reader.events.list({ mediaId: 'm"\\ü', limit: 2, cursor: cursor ?? '' })
    expect(keysOf(next.events)).toEqual(['key 7'])
    expect(next.cursor).toBe(undefined)
  })

  test('keeps an event at its place when its delivery is repeated, and forgets the place once it was handled', async () => {
    const { queue, inbox, reader } = await withWaiting(3)
    expect(await inbox.accept(eventOf('key 0'))).toBe('duplicate')
    expect(keysOf((await reader.events.list({ order: 'oldest' })).events)).toEqual(['key 0', 'key 1', 'key 2'])
    const { calls } = open(queue)
    for (const _ of [0, 1, 2]) (await calls.next()).finish()
    await until(async () => (await inbox.stats()).running + (await inbox.stats()).waiting === 0)
    expect(await redis.client.exists(`webhooks:${queue}:events`)).toBe(0)
  })

  test.each([
    ['oldest', ['key 1', 'key 4']],
    ['newest', ['key 4', 'key 1']],
  ] as const)('finds the %s events of a type, also if it has a colon', async (order, found) => {
    const { reader } = await withWaiting(6, (index) => ({ type: (index % 3 === 1 ? 'a:b' : 'a') as never }))
    expect(keysOf((await reader.events.list({ type: 'a:b', order })).events)).toEqual(found)
    expect(await reader.events.list({ state: 'handled' })).toEqual({ events: [] })
  })

  test('says since when and in which process an event runs, and only that process names its handler and stops it', async () => {
    const queue = freshQueue()
    const { inbox, calls } = open(queue)
    const reader = await look(queue)
    const before = Date.now()
    await inbox.accept(eventOf('one'))
    const { attempt } = await calls.next()
    const record = await reader.events.get('one')
    expect(record).toMatchObject({ state: 'running', process: `${hostname()}:${process.pid}` })
    expect(Math.abs(Number(record?.startedAt) - before)).toBeLessThan(10_000)
    expect(reader.events.stop).toBe(undefined)
    attempt.run = { handler: 'publish', expire: () => {} }
    expect((await inbox.events?.get('one'))?.handler).toBe('publish')
    expect((await inbox.events?.list())?.events).toMatchObject([{ state: 'running', handler: 'publish' }])
    expect((await reader.events.get('one'))?.handler).toBe(undefined)
    // BullMQ finds its workers by the names of their connections, which cannot have a space.
    const jobs = new Queue(queue, { connection: { port: redis.server.port } })
    onTestFinished(() => jobs.close())
    await vi.waitFor(async () => expect(await jobs.getWorkers()).toHaveLength(1))
  })

  test('continues after a page whose events have ended in the meantime', async () => {
    const { queue, reader } = await withWaiting(5)
    const { events, cursor } = await reader.events.list({ order: 'oldest', limit: 2 })
    expect(keysOf(events)).toEqual(['key 0', 'key 1'])
    const { inbox, calls } = open(queue, { concurrency: 1 })
    for (const expected of ['key 0', 'key 1']) {
      const call = await calls.next()
      expect(call.event.key).toBe(expected)
      call.finish()
    }
    await calls.next()
    await until(async () => (await inbox.stats()).waiting === 2)
    const next = await reader.events.list({ order: 'oldest', limit: 2, cursor: cursor ?? '' })
    expect(keysOf(next.events)).toEqual(['key 2', 'key 3'])
  })

  test('lists neither unreadable deliveries nor the jobs of other programs', async () => {
    const { queue, inbox, reader } = await withWaiting(1)
    const body = new TextEncoder().encode('{')
    await inbox.keepUnreadable?.({ reason: 'not JSON', receivedAt: new Date(), eventId: undefined, body })
    const others = new Queue(queue, { connection: { port: redis.server.port } })
    await others.add('foreign', { mediaId: 'media of key 0' })
    await others.close()
    expect(keysOf((await reader.events.list()).events)).toEqual(['key 0'])
    expect(keysOf(await reader.history('media of key 0'))).toEqual(['key 0'])
    const [unreadable] = await reader.deadLetters.list()
    expect(await reader.events.get(unreadable?.key ?? '')).toBe(undefined)
    // A page is full of events, however many unreadable deliveries are newer.
    expect(await reader.events.list({ state: 'dead', limit: 1 })).toEqual({ events: [] })
  })

  test('replays every dead letter although a job of another program failed after them', async () => {
    const queue = freshQueue()
    const count = 1_000
    let result: AttemptResult = dead
    const definition = bullmqInbox({ connection: redis.server.url, queue, concurrency: 100, timeoutMs: 30_000 })
    const inbox = openWith(definition, async () => result)
    onTestFinished(async () => void (await inbox.close({ timeoutMs: 1_000 })))
    const deadLetters = async () => (await inbox.stats()).deadLetters
    await Promise.all(Array.from({ length: count }, (_, index) => inbox.accept(eventOf(`key ${index}`))))
    await until(async () => (await deadLetters()) === count)
    const others = new Queue(queue, { connection: { port: redis.server.port } })
    onTestFinished(() => others.close())
    await others.add('foreign', {})
    await until(async () => (await deadLetters()) === count + 1)
    result = { status: 'done' }
    const report = await inbox.deadLetters.replayAll?.({ perSecond: 100_000 })
    expect(report).toEqual({ total: count, replayed: count, kept: 0 })
  })

  test('changes nothing in Redis', async () => {
    const queue = freshQueue()
    const { inbox, calls } = open(queue)
    for (const [key, result] of [
      ['retrying', later],
      ['dead', dead],
    ] as const) {
      await inbox.accept(eventOf(key))
      ;(await calls.next()).finish(result)
      await until(async () => (await inbox.events?.get(key))?.state === key)
    }
    await inbox.close()
    const reader = await look(queue)
    const dump = async () => {
      const keys = (await redis.client.keys(`*:${queue}:*`)).toSorted()
      return Promise.all(keys.map(async (key) => [key, await redis.client.dump(key)]))
    }
    const before = await dump()
    await reader.events.list()
    await reader.events.get('dead')
    await reader.history('media of dead')
    await reader.stats()
    await reader.deadLetters.list()
    await reader.activity(new Date(0))
    expect(await dump()).toEqual(before)
  })

  test('starts an attempt now from a process that handles nothing', async () => {
    const queue = freshQueue()
    const { inbox, calls } = open(queue)
    await inbox.accept(eventOf('one'))
    ;(await calls.next()).finish(later)
    const reader = await look(queue)
    await until(async () => (await reader.events.get('one'))?.state === 'retrying')
    expect(await Promise.all([reader.events.retryNow('one'), reader.events.retryNow('one')])).toContain(true)
    expect((await calls.next()).attempt.number).toBe(2)
    expect(await reader.events.retryNow('one')).toBe(false)
  })

  test('keeps the newest 20 failed attempts, and their errors out of the stream of BullMQ', async () => {
    const queue = freshQueue()
    const { inbox, calls } = open(queue)
    await inbox.accept(eventOf('one'))
    for (let number = 1; number <= 22; number++)
      (await calls.next()).finish({ ...later, delayMs: 1, failures: [{ handler: 'b', message: `no. ${number}` }] })
    ;(await calls.next()).finish(dead)
    await until(async () => (await inbox.stats()).deadLetters === 1)
    const record = await inbox.events?.get('one')
    expect(record?.failedAttempts.map(({ number }) => number)).toEqual(Array.from({ length: 20 }, (_, i) => i + 4))
    expect(record?.failedAttempts[0]?.failures).toEqual([{ handler: 'b', message: 'no. 4' }])
    expect(JSON.stringify(await redis.client.xrange(`bull:${queue}:events`, '-', '+'))).not.toContain('no. 4')
  })

  test('does not take an event that waits for its second attempt for the oldest that waits to start', async () => {
    const queue = freshQueue()
    const { inbox, calls } = open(queue, { concurrency: 1 })
    const at = (key: string, second: number) => ({
      ...eventOf(key),
      receivedAt: new Date(1_772_366_400_000 + second * 1_000),
    })
    await inbox.accept(at('failed', 0))
    ;(await calls.next()).finish(later)
    await until(async () => (await inbox.stats()).retrying === 1)
    await inbox.accept(at('running', 1))
    await calls.next()
    expect(await inbox.events?.retryNow('failed')).toBe(true)
    await inbox.accept(at('first', 5))
    await inbox.accept(at('second', 9))
    const stats = await inbox.stats()
    expect(stats).toMatchObject({ waiting: 3, running: 1 })
    expect(stats.oldestWaitingAt).toEqual(at('first', 5).receivedAt)
  })

  test('adds up the activity of all processes, also of those that have ended', async () => {
    const queue = freshQueue()
    const first = open(queue)
    const second = open(queue, { handles: false })
    for (const { observers } of [first, first, second])
      observers[0]?.delivery({ outcome: 'accepted', status: 200, durationMs: 3 })
    const accepted = async () => {
      const minutes = await (await look(queue)).activity(new Date(Date.now() - 120_000))
      return minutes.reduce((sum, minute) => sum + minute.accepted, 0)
    }
    // A process writes what it did before it answers, and when it closes.
    expect((await first.inbox.activity?.(new Date(0)))?.reduce((sum, minute) => sum + minute.accepted, 0)).toBe(2)
    await second.inbox.close()
    expect(await accepted()).toBe(3)
    const [key] = await redis.client.keys(`webhooks:${queue}:activity:*`)
    expect(await redis.client.hlen(key as string)).toBe(2)
    const ttl = await redis.client.pttl(key as string)
    expect(ttl).toBeGreaterThan(24 * 3_600_000)
    expect(ttl).toBeLessThanOrEqual(25 * 3_600_000)
  })

  test('reports how long it takes to accept an event and to record its end', async () => {
    const measured = vi.fn()
    const inbox = bullmqInbox({ connection: redis.server.url, queue: freshQueue() }).open({
      handle: async () => ({ status: 'done' }),
      handlersOf: () => [],
      handlers: () => [],
      parse: () => Promise.reject(new Error('there are none')),
      logger: silent,
      observe() {},
      measured,
    })
    onTestFinished(async () => void (await inbox.close()))
    await inbox.accept(eventOf('one'))
    await until(async () => measured.mock.calls.length === 2)
    expect(measured.mock.calls).toEqual([
      ['accept', expect.any(Number), undefined],
      ['record', expect.any(Number), undefined],
    ])
  })
})
