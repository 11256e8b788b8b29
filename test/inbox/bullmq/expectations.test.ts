import { describe, expect, onTestFinished, test, vi } from 'vitest'
import { addEvent } from '../../../src/inbox/bullmq/expectations.ts'
import { EventQueue } from '../../../src/inbox/bullmq/queue.ts'
import { type BullmqInboxOptions, bullmqInbox, openInboxQueue } from '../../../src/inbox/bullmq.ts'
import type { ExpectationChanges } from '../../../src/inbox/inbox.ts'
import { createReceiver, unverified } from '../../../src/index.ts'
import { deliver } from '../../../src/testing/index.ts'
import { eventOf, openInbox, until } from '../../support/inbox.ts'
import { recordingLogger } from '../../support/recording-logger.ts'
import { findRedis } from '../../support/redis/find-redis.ts'
import { redisTests } from '../../support/redis/redis-tests.ts'
import { silent } from '../../support/silent.ts'
import { future, upgraded, url } from '../../support/unreadable.ts'

const media = 'media'
const noon = Date.parse('2026-03-01T12:00:00Z')
const soonMs = 300
const laterMs = 60_000
/** Longer than the time between two checks of the deadlines, in ms. */
const checkedMs = 1_500

const pause = (ms: number) => new Promise((resolve) => setTimeout(resolve, ms))

/** Makes the effects of an event that begins an expectation. Its overdue event has the key `late <key>`. */
function beginning(key: string, { dueInMs = soonMs, at = 0, mediaId = media } = {}) {
  const dueAt = new Date(Date.now() + dueInMs)
  const overdue = { ...eventOf(`late ${key}`, mediaId), receivedAt: dueAt, owed: ['a', 'b'] }
  return { at: new Date(noon + at), begins: [{ rule: 'rule', dueAt, overdue }], ends: [] }
}

const ending = (at = 0): ExpectationChanges => ({ at: new Date(noon + at), begins: [], ends: ['rule'] })

describe.skipIf(!findRedis())('bullmqInbox', () => {
  const redis = redisTests()

  /** Opens inboxes of one queue. */
  const inQueue = (queue = `queue ${crypto.randomUUID()}`) => {
    const connection = { port: redis.server.port }
    const open = (options: Partial<BullmqInboxOptions> = {}, logger = silent) => {
      const opened = openInbox(bullmqInbox({ connection, queue, ...options }), logger)
      const close = async () => {
        opened.calls.finishAll()
        await opened.inbox.close({ timeoutMs: 1_000 })
      }
      onTestFinished(close)
      const accept = (key: string, changes: ExpectationChanges, mediaId = media) => {
        opened.changes.set(key, changes)
        return opened.inbox.accept(eventOf(key, mediaId))
      }
      return { ...opened, accept, close }
    }
    /** Opens an inbox that accepts events and handles none. */
    const openFront = (options: Partial<BullmqInboxOptions> = {}) => open({ ...options, handles: false })
    /** Stores an event as a process that crashes before it applies the effects. */
    const storeOnly = async (key: string, changes: ExpectationChanges) => {
      const jobs = new EventQueue(queue, connection, 2_000)
      const run = jobs.own.run.bind(jobs.own)
      vi.spyOn(jobs.own, 'run').mockImplementation(async (script, ...of) => {
        if (script === 'applyChanges') throw new Error('crashed')
        return run(script, ...of) as never
      })
      const receiver = { handlersOf: () => ['a', 'b'], expectations: () => changes }
      await expect(addEvent(jobs, receiver, eventOf(key, media), 60_000)).rejects.toThrow()
      await jobs.close()
    }
    const keys = async (name: string) => (await redis.client.keys(`webhooks:${queue}:${name}*`)).sort()
    return { queue, connection, open, openFront, storeOnly, keys }
  }

  test('hands over what became overdue while no process handled events', async () => {
    const { open, openFront, keys } = inQueue()
    const front = openFront()
    const changes = beginning('one')
    await front.accept('one', changes)
    await pause(soonMs)
    expect(await front.inbox.stats()).toMatchObject({ waiting: 1, expected: 1 })
    const { calls, inbox, close } = open()
    // The two have no order, since the deadline has passed before the first one is handled.
    const both = [await calls.next(), await calls.next()]
    const call = both.find(({ event }) => event.key === 'late one')
    both.find(({ event }) => event.key === 'one')?.finish()
    expect(call?.event).toEqual(changes.begins[0]?.overdue.event)
    expect(call?.receivedAt).toEqual(changes.begins[0]?.dueAt)
    expect(await inbox.events?.get('late one')).toMatchObject({ key: 'late one', state: 'running' })
    await close()
    expect(await keys('expected')).toEqual([])
    expect(await front.inbox.accept(eventOf('late one'))).toBe('duplicate')
    expect(await front.inbox.stats()).toEqual({ waiting: 0, running: 0, retrying: 0, deadLetters: 0 })
  })

  test.each([
    ['ahead', 60_000],
    ['behind', -180_000],
  ])('decides by the clock of Redis what is overdue, in a process whose clock is %s', async (_, aheadMs) => {
    const now = Date.now
    const clock = vi.spyOn(Date, 'now').mockImplementation(() => now() + aheadMs)
    onTestFinished(() => clock.mockRestore())
    const { open, queue } = inQueue()
    const { calls, inbox, accept } = open()
    await inbox.stats()
    await accept('one', beginning('one', { dueInMs: 120_000 }))
    ;(await calls.next()).finish()
    await pause(checkedMs)
    expect(await inbox.stats()).toMatchObject({ expected: 1 })
    const [, dueAt] = await redis.client.zrange(`webhooks:${queue}:expected`, '0', '-1', 'WITHSCORES')
    expect(Math.abs(Number(dueAt) - now() - 120_000)).toBeLessThan(30_000)
  })

  test('hands over what a process took before it crashed, although an end came since', async () => {
    const { open, openFront, queue, connection } = inQueue()
    const front = openFront()
    await front.accept('one', beginning('one'))
    await pause(soonMs)
    const crashed = new EventQueue(queue, connection, 2_000)
    const [, taken] = await crashed.own.run<[unknown, unknown[]]>('takeOverdue', 100, 1_000)
    await crashed.close()
    expect(taken).toHaveLength(1)
    await front.accept('end', ending(9))
    const { calls, inbox } = open()
    const keys: string[] = []
    for (const _ of ['one', 'end', 'late one']) {
      const call = await calls.next()
      keys.push(call.event.key)
      call.finish()
    }
    expect(keys.toSorted()).toEqual(['end', 'late one', 'one'])
    await until(async () => (await inbox.stats()).running === 0)
    expect(await inbox.stats()).toEqual({ waiting: 0, running: 0, retrying: 0, deadLetters: 0 })
  })

  test('hands each over once, although several processes do so', async () => {
    const { open, openFront } = inQueue()
    const front = openFront({ timeoutMs: 30_000 })
    const names = Array.from({ length: 250 }, (_, i) => `${i}`)
    await Promise.all(names.map((name) => front.accept(name, beginning(name, { mediaId: name }), name)))
    await pause(soonMs)
    const seen: string[] = []
    const processes = Array.from({ length: 4 }, () => open({ concurrency: 50 }))
    for (const { calls } of processes) {
      const handle = async (): Promise<void> => {
        const call = await calls.next()
        if (call.event.key.startsWith('late')) seen.push(call.event.key)
        call.finish()
        return handle()
      }
      handle().catch(() => {})
    }
    await until(async () => {
      const { waiting, running, expected } = await front.inbox.stats()
      return waiting + running + (expected ?? 0) === 0
    })
    await pause(checkedMs)
    expect(seen.sort()).toEqual(names.map((name) => `late ${name}`).sort())
  })

  describe('after a crash between an event and its changes', () => {
    test('begins the expectation before the first handler of the event runs', async () => {
      const { open, storeOnly } = inQueue()
      await storeOnly('one', beginning('one'))
      const { calls, inbox } = open()
      const call = await calls.next()
      expect(call.event.key).toBe('one')
      expect(await inbox.stats()).toMatchObject({ expected: 1 })
      call.finish()
      expect((await calls.next()).event.key).toBe('late one')
    })

    test('ends the expectations before the first handler of the event runs', async () => {
      const { open, openFront, storeOnly } = inQueue()
      await openFront().accept('one', beginning('one', { dueInMs: laterMs }))
      await storeOnly('end', ending())
      const { calls, inbox } = open({ concurrency: 1 })
      ;(await calls.next()).finish()
      const call = await calls.next()
      expect(call.event.key).toBe('end')
      expect(await inbox.expected?.()).toEqual([])
    })

    test('ends the expectations before the repeated delivery is acknowledged, at the time of the first', async () => {
      const { openFront, storeOnly } = inQueue()
      const front = openFront()
      await front.accept('one', beginning('one', { dueInMs: laterMs }))
      await front.accept('two', beginning('two', { dueInMs: laterMs, at: 5 }))
      await storeOnly('end', ending(4))
      expect((await front.inbox.expected?.())?.length).toBe(2)
      expect(await front.accept('end', ending(9))).toBe('duplicate')
      expect(await front.inbox.expected?.()).toMatchObject([{ beganAt: new Date(noon + 5) }])
    })

    test('begins nothing that was ended in the meantime', async () => {
      const { open, openFront, storeOnly } = inQueue()
      await storeOnly('one', beginning('one', { dueInMs: laterMs }))
      await openFront().accept('end', ending())
      const { calls, inbox } = open()
      await calls.next()
      expect(await inbox.expected?.()).toEqual([])
    })
  })

  test('begins nothing again in the first attempt of an event that was reported before it', async () => {
    const { open, openFront } = inQueue()
    const front = openFront()
    await front.inbox.accept(eventOf('other'))
    await front.accept('one', beginning('one'))
    const { calls, inbox } = open({ concurrency: 1 })
    const other = await calls.next()
    await until(async () => (await inbox.stats()).expected === undefined)
    other.finish()
    for (const key of ['one', 'late one']) {
      const call = await calls.next()
      expect(call.event.key).toBe(key)
      call.finish()
    }
    await until(async () => (await inbox.stats()).running === 0)
    await pause(checkedMs)
    expect(await inbox.stats()).toEqual({ waiting: 0, running: 0, retrying: 0, deadLetters: 0 })
  })

  test('remembers an end for ttlMs, and keeps nothing else of it', async () => {
    const { openFront, keys } = inQueue()
    const { accept, inbox } = openFront({ ttlMs: 400 })
    await accept('one', beginning('one', { dueInMs: laterMs }))
    await accept('end', ending(4))
    expect(await keys('expected')).toEqual([])
    await accept('two', beginning('two', { dueInMs: laterMs, at: 4 }))
    expect(await inbox.expected?.()).toEqual([])
    await until(async () => (await keys('ended')).length === 0)
    await accept('three', beginning('three', { dueInMs: laterMs, at: 4 }))
    expect((await inbox.expected?.())?.length).toBe(1)
  })

  test('shows the open expectations to its inspection, also more than one step reads', async () => {
    const { queue, connection, openFront } = inQueue()
    const { accept } = openFront({ timeoutMs: 30_000 })
    const names = Array.from({ length: 1_010 }, (_, i) => `${i}`)
    const due = (name: string) => ({ dueInMs: laterMs + Number(name) * 1_000, mediaId: name })
    await Promise.all(names.map((name) => accept(name, beginning(name, due(name)), name)))
    const opened = await openInboxQueue({ connection, queue })
    onTestFinished(() => opened.close())
    expect(await opened.stats()).toMatchObject({ expected: 1_010 })
    expect((await opened.expected(2_000)).map(({ mediaId }) => mediaId)).toEqual(names)
    expect((await opened.expected()).length).toBe(100)
    expect(await opened.expected(0)).toEqual([])
  })

  test('says once that Redis cannot hand over what is overdue, and hands it over as soon as Redis can', async () => {
    const { open } = inQueue()
    const { logger, lines } = recordingLogger('warn')
    const { accept, calls } = open({}, logger)
    await accept('one', beginning('one', { dueInMs: 1_000 }))
    ;(await calls.next()).finish()
    await redis.client.config('SET', 'maxmemory', '1')
    onTestFinished(async () => void (await redis.client.config('SET', 'maxmemory', '0')))
    const warnings = () => lines.filter(({ message }) => message.startsWith('Redis refuses'))
    await until(async () => warnings().length > 0)
    await pause(checkedMs)
    expect(warnings().length).toBe(1)
    await redis.client.config('SET', 'maxmemory', '0')
    expect((await calls.next()).event.key).toBe('late one')
  })

  test('begins the expectation of an unreadable delivery after its replay by a process without a receiver', async () => {
    const { queue, connection } = inQueue()
    const overdue: string[] = []
    const receiver = createReceiver({ verify: unverified(), inbox: bullmqInbox({ connection, queue }), logger: silent })
    onTestFinished(async () => void (await receiver.close({ timeoutMs: 1_000 })))
    const { deadLetters, close } = await vi.waitFor(() => openInboxQueue({ connection, queue }))
    onTestFinished(() => close())
    const rule = { then: 'encoding.failed', within: 200, name: 'failed' } as const
    receiver.expect('encoding.finished', rule, ({ mediaId }) => void overdue.push(mediaId))
    await deliver(receiver, future, { url })
    const [dead] = await deadLetters.list()
    await upgraded(async () => {
      await deadLetters.replay(dead?.key ?? '')
      await until(async () => overdue.length > 0)
    })
    expect(overdue).toEqual(['m1'])
  })
})
