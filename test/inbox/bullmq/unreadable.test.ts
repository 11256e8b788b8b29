import { describe, expect, onTestFinished, test, vi } from 'vitest'
import type { UnreadableData } from '../../../src/inbox/bullmq/job.ts'
import { EventQueue } from '../../../src/inbox/bullmq/queue.ts'
import { KeptUnreadable } from '../../../src/inbox/bullmq/unreadable.ts'
import { type BullmqInboxOptions, bullmqInbox, openInboxQueue } from '../../../src/inbox/bullmq.ts'
import {
  createReceiver,
  PermanentFailure,
  type Receiver,
  type ReceiverOptions,
  unverified,
} from '../../../src/index.ts'
import { deliver, samplePayload } from '../../../src/testing/index.ts'
import { until } from '../../support/inbox.ts'
import { findRedis } from '../../support/redis/find-redis.ts'
import { redisTests } from '../../support/redis/redis-tests.ts'
import { silent } from '../../support/silent.ts'
import { future, opened, upgraded, url } from '../../support/unreadable.ts'

describe.skipIf(!findRedis())('bullmqInbox', () => {
  const redis = redisTests()

  const open = async (options: Partial<ReceiverOptions>, inboxOptions: Partial<BullmqInboxOptions> = {}) => {
    const inbox = bullmqInbox({
      connection: redis.server.url,
      queue: `unreadable ${crypto.randomUUID()}`,
      ...inboxOptions,
    })
    const receiver = createReceiver({ verify: unverified(), inbox, logger: silent, ...options })
    onTestFinished(async () => void (await receiver.close({ timeoutMs: 1_000 })))
    return receiver
  }

  /** Keeps an unreadable delivery in a queue of its own, and opens that without a receiver. */
  const inQueue = async (inboxOptions: Partial<BullmqInboxOptions> = {}) => {
    const queue = `unreadable ${crypto.randomUUID()}`
    const parts = await opened((options) => open(options, { queue, ...inboxOptions }))
    await deliver(parts.receiver, future, { url })
    const opening = () => openInboxQueue({ connection: redis.server.url, queue })
    const reader = await vi.waitFor(opening)
    onTestFinished(() => reader.close())
    const key = async () => (await parts.deadLetters.list())[0]?.key ?? ''
    const keys = async (name: string) => redis.client.keys(`webhooks:${queue}:${name}*`)
    return { ...parts, queue, reader, key, keys }
  }
  const isIdle = ({ inbox }: Receiver) =>
    until(async () => {
      const { waiting, running } = await inbox.stats()
      return waiting + running === 0
    })

  test('keeps the newest 1,000 unreadable deliveries', async () => {
    const { receiver, deadLetters, keys } = await inQueue()
    const [first] = await deadLetters.list()
    const { inbox } = receiver
    const keep = (n: number) =>
      inbox.keepUnreadable?.({
        reason: 'no',
        receivedAt: new Date(),
        eventId: undefined,
        body: new TextEncoder().encode(`${n}`),
      })
    await until(async () => Date.now() > (first?.diedAt.getTime() ?? 0) + 5)
    for (let n = 0; n < 1_000; n++) await keep(n)
    expect(await deadLetters.get(first?.key ?? '')).toBe(undefined)
    expect(await inbox.stats()).toMatchObject({ deadLetters: 1_000 })
    expect(await deadLetters.list({ limit: 2_000 })).toHaveLength(1_000)
    expect(await redis.client.hlen((await keys('unreadable-data'))[0] as string)).toBe(1_000)
  })

  test('lists the keys of unreadable deliveries and of dead events together, oldest first', async () => {
    const { receiver, deadLetters, reader } = await inQueue()
    receiver.onAny(() => {
      throw new PermanentFailure('no')
    })
    const kept = async (count: number) => {
      await until(async () => (await receiver.inbox.stats()).deadLetters === count)
      const [newest] = await deadLetters.list()
      await until(async () => Date.now() > (newest?.diedAt.getTime() ?? 0) + 2)
      return newest?.key
    }
    const order = [await kept(1)]
    await deliver(receiver, samplePayload('encoding.finished', { media_id: 'event' }), { url })
    order.push(await kept(2))
    await deliver(receiver, future.replace('m1', 'm2'), { url })
    order.push(await kept(3))
    expect(await reader.deadLetters.keys()).toEqual(order)
  })

  test('is handled once after a process without a receiver has replayed it', async () => {
    const { receiver, deadLetters, handled, reader, key } = await inQueue()
    await upgraded(async () => {
      expect(await reader.deadLetters.replay(await key())).toBe(true)
      await until(async () => handled.length === 1)
    })
    await isIdle(receiver)
    expect(await deadLetters.list()).toEqual([])
    const acknowledged = await upgraded(async () => deliver(receiver, future, { url }))
    expect(acknowledged).toMatchObject({ outcome: 'duplicate' })
  })

  test('is kept again after a process without a receiver has replayed it, if it still cannot be parsed', async () => {
    const { receiver, deadLetters, reader, key } = await inQueue()
    const before = await deadLetters.get(await key())
    expect(await reader.deadLetters.replay(await key())).toBe(true)
    await isIdle(receiver)
    expect(await deadLetters.get(before?.key ?? '')).toMatchObject({ key: before?.key, unreadable: before?.unreadable })
    expect(await receiver.inbox.stats()).toMatchObject({ deadLetters: 1 })
  })

  test('is not handled a second time if it was delivered anew before it is replayed without a receiver', async () => {
    const { receiver, deadLetters, handled, reader, key } = await inQueue()
    await upgraded(async () => {
      expect(await deliver(receiver, future, { url })).toMatchObject({ outcome: 'accepted' })
      await until(async () => handled.length === 1)
      expect(await reader.deadLetters.replay(await key())).toBe(true)
      await isIdle(receiver)
      expect(await deadLetters.list()).toEqual([])
    })
    expect(handled).toHaveLength(1)
  })

  test('is handled once if a process ends during its replay, after it has added the event', async () => {
    const { queue, deadLetters, handled, key } = await inQueue()
    const unreadable = await key()
    const ended = new KeptUnreadable(new EventQueue(queue, redis.server.url, 1_000))
    const data = (await ended.get(unreadable)) as UnreadableData
    await upgraded(async () => {
      expect(await deadLetters.replay(unreadable)).toBe(true)
      await ended.keepAgain(data, 'no')
      await until(async () => handled.length === 1)
      expect(await deadLetters.replay(unreadable)).toBe(true)
    })
    expect(await deadLetters.list()).toEqual([])
    expect(handled).toHaveLength(1)
  })

  test('stays if it is kept again before the process that replayed it removes it', async () => {
    const { queue, deadLetters, key } = await inQueue()
    const kept = new KeptUnreadable(new EventQueue(queue, redis.server.url, 1_000))
    const replayed = (await kept.get(await key())) as UnreadableData
    await kept.keepAgain(replayed, 'it still cannot be parsed')
    expect(await kept.remove(replayed.key, replayed)).toBe(false)
    expect(await deadLetters.list()).toMatchObject([{ failures: [{ message: 'it still cannot be parsed' }] }])
  })

  test('says that an event waits since its replay if its delivery could not be read before', async () => {
    const { inbox } = (await open({}, { handles: false })).onAny(() => {})
    const body = new TextEncoder().encode(JSON.stringify(samplePayload('encoding.finished')))
    await inbox.keepUnreadable?.({ reason: 'not known then', receivedAt: new Date(0), eventId: undefined, body })
    const [unreadable] = await inbox.deadLetters.list()
    const before = Date.now()
    expect(await inbox.deadLetters.replay(unreadable?.key ?? '')).toBe(true)
    const { waiting, oldestWaitingAt } = await inbox.stats()
    expect(waiting).toBe(1)
    expect(oldestWaitingAt?.getTime()).toBeGreaterThanOrEqual(before)
    expect((await inbox.events?.list())?.events).toMatchObject([{ state: 'waiting', receivedAt: new Date(0) }])
  })

  test('becomes a dead event, and does not vanish, if it is replayed without a handler for its type', async () => {
    const { inbox } = await open({ retry: { attempts: 1 } })
    const body = new TextEncoder().encode(JSON.stringify(samplePayload('encoding.finished')))
    await inbox.keepUnreadable?.({ reason: 'not known then', receivedAt: new Date(), eventId: undefined, body })
    const [unreadable] = await inbox.deadLetters.list()
    expect(await inbox.deadLetters.replay(unreadable?.key ?? '')).toBe(true)
    await until(async () => {
      const { waiting, running } = await inbox.stats()
      return waiting + running === 0
    })
    const failures = [{ handler: 'none', message: 'no handler is registered for its type' }]
    expect(await inbox.deadLetters.list()).toMatchObject([{ event: { type: 'encoding.finished' }, failures }])
  })

  test('leaves nothing of a discarded delivery in Redis', async () => {
    const { deadLetters, keys, key } = await inQueue()
    await deadLetters.discard(await key())
    expect(await keys('unreadable')).toEqual([])
  })
})
