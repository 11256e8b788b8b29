import { Queue } from 'bullmq'
import { describe, expect, onTestFinished, test } from 'vitest'
import { type EventJob, EventQueue } from '../../../src/inbox/bullmq/queue.ts'
import { type BullmqInboxOptions, bullmqInbox } from '../../../src/inbox/bullmq.ts'
import { createReceiver, type Receiver, type ReceiverOptions, unverified } from '../../../src/index.ts'
import { deliver, samplePayload } from '../../../src/testing/index.ts'
import { eventOf, until } from '../../support/inbox.ts'
import { findRedis } from '../../support/redis/find-redis.ts'
import { redisTests } from '../../support/redis/redis-tests.ts'
import { silent } from '../../support/silent.ts'
import { checkUnreadable, future, opened, upgraded, url } from '../unreadable.suite.ts'

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

  /** Keeps an unreadable delivery in a queue of its own, and returns it as BullMQ sees it. */
  const inQueue = async (inboxOptions: Partial<BullmqInboxOptions> = {}) => {
    const queue = `unreadable ${crypto.randomUUID()}`
    const parts = await opened((options) => open(options, { queue, ...inboxOptions }))
    await deliver(parts.receiver, future, { url })
    const board = new Queue(queue, { connection: { port: redis.server.port } })
    onTestFinished(() => board.close())
    const job = async () => (await board.getFailed())[0]
    const key = async () => (await parts.deadLetters.list())[0]?.key ?? ''
    return { ...parts, queue, prefix: `bull:${queue}:`, board, job, key }
  }
  const isIdle = ({ inbox }: Receiver) =>
    until(async () => {
      const { waiting, running } = await inbox.stats()
      return waiting + running === 0
    })
  const knownKeys = (prefix: string) => redis.client.keys(`${prefix}de:*`)

  checkUnreadable(open)

  test('keeps the newest 1,000 unreadable deliveries', async () => {
    const { receiver, deadLetters, prefix, board } = await inQueue()
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
    expect(await board.getFailedCount()).toBe(1_000)
    // The key is as long as those of earlier versions.
    expect(first?.key).toMatch(/^unreadable:[^:]{32}$/)
    expect(await knownKeys(prefix)).toHaveLength(1_000)
  })

  test('handles an unreadable delivery once after another program, such as Bull Board, has retried it', async () => {
    const { receiver, deadLetters, handled, prefix, job } = await inQueue()
    await upgraded(async () => {
      await (await job())?.retry()
      await until(async () => handled.length === 1)
    })
    await isIdle(receiver)
    expect(await deadLetters.list()).toEqual([])
    const acknowledged = await upgraded(async () => deliver(receiver, future, { url }))
    expect(acknowledged).toMatchObject({ outcome: 'duplicate' })
    expect(await knownKeys(prefix)).toHaveLength(1)
  })

  test('keeps an unreadable delivery that another program has retried and that still cannot be parsed', async () => {
    const { receiver, deadLetters, job, key } = await inQueue()
    const before = await deadLetters.get(await key())
    await (await job())?.retry()
    await isIdle(receiver)
    expect(await deadLetters.get(await key())).toMatchObject({ key: before?.key, unreadable: before?.unreadable })
  })

  test.each(['replayed', 'retried by another program'])(
    'does not handle an event a second time if it was delivered anew before its unreadable delivery is %s',
    async (how) => {
      const { receiver, deadLetters, handled, prefix, job, key } = await inQueue()
      await upgraded(async () => {
        expect(await deliver(receiver, future, { url })).toMatchObject({ outcome: 'accepted' })
        await until(async () => handled.length === 1)
        if (how === 'replayed') expect(await deadLetters.replay(await key())).toBe(true)
        else await (await job())?.retry()
        await isIdle(receiver)
        expect(await deadLetters.list()).toEqual([])
      })
      expect(handled).toHaveLength(1)
      expect(await knownKeys(prefix)).toHaveLength(1)
    },
  )

  test('keeps the event of an unreadable delivery as a dead letter if a process ends during its replay', async () => {
    const { queue, deadLetters, handled, prefix, key } = await inQueue()
    const unreadableKey = await key()
    const ended = new EventQueue(queue, redis.server.url, 1_000)
    const accepted = eventOf('one')
    expect(await ended.convert((await ended.find(unreadableKey)) as EventJob, accepted)).toBe('converted')
    await ended.close()
    expect(await deadLetters.list()).toMatchObject([{ key: 'one', event: accepted.event }])
    expect(await deadLetters.get(unreadableKey)).toBe(undefined)
    expect(await deadLetters.replay('one')).toBe(true)
    await until(async () => handled.length === 1 && (await redis.client.zcard(`${prefix}unreadable`)) === 0)
    expect(await deadLetters.replay('one')).toBe(false)
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

  test('keeps a discarded delivery again when it arrives again', async () => {
    const { receiver, deadLetters, prefix, key } = await inQueue()
    await deadLetters.discard(await key())
    expect(await knownKeys(prefix)).toEqual([])
    await deliver(receiver, future, { url })
    expect(await deadLetters.list()).toHaveLength(1)
  })
})
