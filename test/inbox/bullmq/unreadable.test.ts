import { Queue } from 'bullmq'
import { Redis } from 'ioredis'
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest'
import { type EventJob, EventQueue } from '../../../src/inbox/bullmq/queue.ts'
import { type BullmqInboxOptions, bullmqInbox } from '../../../src/inbox/bullmq.ts'
import { createReceiver, type Receiver, type ReceiverOptions, unverified } from '../../../src/index.ts'
import { eventOf, until } from '../../../src/testing/contract/handling.ts'
import { deliver } from '../../../src/testing/index.ts'
import { silent } from '../../conformance/subject.ts'
import { findRedis } from '../../redis/find-redis.ts'
import { RedisServer } from '../../redis/redis-server.ts'
import { checkRefused, future, refusing, upgraded, url } from '../unreadable.ts'

describe.skipIf(!findRedis())('bullmqInbox', () => {
  let server: RedisServer
  let redis: Redis
  beforeAll(async () => {
    server = await RedisServer.start()
    redis = new Redis(server.port)
  })
  afterAll(async () => {
    redis?.disconnect()
    await server?.remove()
  })

  const open = async (options: Partial<ReceiverOptions>, inboxOptions: Partial<BullmqInboxOptions> = {}) => {
    const inbox = bullmqInbox({ connection: server.url, queue: `refused ${crypto.randomUUID()}`, ...inboxOptions })
    const receiver = createReceiver({ verify: unverified(), inbox, logger: silent, ...options })
    onTestFinished(async () => void (await receiver.close({ timeoutMs: 1_000 })))
    return receiver
  }

  /** One refused delivery in a queue of that name, as BullMQ sees it. */
  const inQueue = async (inboxOptions: Partial<BullmqInboxOptions> = {}) => {
    const queue = `refused ${crypto.randomUUID()}`
    const parts = await refusing((options) => open(options, { queue, ...inboxOptions }))
    await deliver(parts.receiver, future, { url })
    const board = new Queue(queue, { connection: { port: server.port } })
    onTestFinished(() => board.close())
    const job = async () => (await board.getFailed())[0]
    const key = async () => (await parts.letters.list())[0]?.key ?? ''
    return { ...parts, queue, prefix: `bull:${queue}:`, board, job, key }
  }
  const isIdle = ({ inbox }: Receiver) =>
    until(async () => {
      const { waiting, running } = await inbox.stats()
      return waiting + running === 0
    })
  const knownKeys = (prefix: string) => redis.keys(`${prefix}de:*`)

  checkRefused(open)

  test('keeps 1,000 refused deliveries, and the oldest goes', async () => {
    const { receiver, letters, prefix, board } = await inQueue()
    const [first] = await letters.list()
    const { inbox } = receiver
    const refuse = (n: number) =>
      inbox.refuse?.({
        reason: 'no',
        receivedAt: new Date(),
        url: '/',
        eventId: undefined,
        body: new TextEncoder().encode(`${n}`),
      })
    await until(async () => Date.now() > (first?.diedAt.getTime() ?? 0) + 5)
    for (let n = 0; n < 1_000; n++) await refuse(n)
    expect(await letters.get(first?.key ?? '')).toBe(undefined)
    expect(await inbox.stats()).toMatchObject({ deadLetters: 1_000 })
    expect(await board.getFailedCount()).toBe(1_000)
    expect(await knownKeys(prefix)).toHaveLength(1_000)
  }, 20_000)

  test('handles a refused delivery once that was retried from elsewhere, such as Bull Board', async () => {
    const { receiver, letters, handled, prefix, job } = await inQueue()
    await upgraded(async () => {
      await (await job())?.retry()
      await until(async () => handled.length === 1)
    })
    await isIdle(receiver)
    expect(await letters.list()).toEqual([])
    const acknowledged = await upgraded(async () => deliver(receiver, future, { url }))
    expect(acknowledged).toMatchObject({ outcome: 'duplicate' })
    expect(await knownKeys(prefix)).toHaveLength(1)
  })

  test('keeps a refused delivery that was retried from elsewhere and still cannot be read', async () => {
    const { receiver, letters, job, key } = await inQueue()
    const before = await letters.get(await key())
    await (await job())?.retry()
    await isIdle(receiver)
    expect(await letters.get(await key())).toMatchObject({ key: before?.key, refused: before?.refused })
  })

  test.each(['replayed', 'retried from elsewhere'])(
    'does not handle an event again that was delivered anew, when its refused delivery is %s',
    async (how) => {
      const { receiver, letters, handled, prefix, job, key } = await inQueue()
      await upgraded(async () => {
        expect(await deliver(receiver, future, { url })).toMatchObject({ outcome: 'accepted' })
        await until(async () => handled.length === 1)
        if (how === 'replayed') expect(await letters.replay(await key())).toBe(true)
        else await (await job())?.retry()
        await isIdle(receiver)
        expect(await letters.list()).toEqual([])
      })
      expect(handled).toHaveLength(1)
      expect(await knownKeys(prefix)).toHaveLength(1)
    },
  )

  test('keeps the event of a refused delivery as a dead letter when a process ends halfway through its replay', async () => {
    const { queue, letters, handled, prefix, key } = await inQueue()
    const refusedKey = await key()
    const ended = new EventQueue(queue, server.url, 1_000)
    const accepted = eventOf('one')
    expect(await ended.become((await ended.find(refusedKey)) as EventJob, accepted)).toBe('event')
    await ended.close()
    expect(await letters.list()).toMatchObject([{ key: 'one', event: accepted.event }])
    expect(await letters.get(refusedKey)).toBe(undefined)
    expect(await letters.replay('one')).toBe(true)
    await until(async () => handled.length === 1 && (await redis.zcard(`${prefix}refused`)) === 0)
    expect(await letters.replay('one')).toBe(false)
  })

  test('lets one of two concurrent replays of a refused delivery win', async () => {
    const { letters, handled, receiver, key } = await inQueue()
    const refusedKey = await key()
    const replays = await upgraded(() => Promise.all([letters.replay(refusedKey), letters.replay(refusedKey)]))
    expect(replays.toSorted()).toEqual([false, true])
    await isIdle(receiver)
    expect(handled).toHaveLength(1)
  })

  test('keeps a discarded delivery again when it comes again', async () => {
    const { receiver, letters, prefix, key } = await inQueue()
    await letters.discard(await key())
    expect(await knownKeys(prefix)).toEqual([])
    await deliver(receiver, future, { url })
    expect(await letters.list()).toHaveLength(1)
  })

  test('reads nothing again before it is started', async () => {
    const { queue, key } = await inQueue()
    const other = bullmqInbox({ connection: server.url, queue })
    onTestFinished(async () => void (await other.close()))
    await expect(other.deadLetters.replay(await key())).rejects.toMatchObject({ code: 'malformed' })
  })
})
