import { Queue } from 'bullmq'
import { Redis } from 'ioredis'
import { afterAll, beforeAll, describe, expect, onTestFinished, test, vi } from 'vitest'
import { type BullmqInboxOptions, bullmqInbox } from '../../src/inbox/bullmq.ts'
import type { Inbox } from '../../src/inbox/inbox.ts'
import { type Calls, eventOf, startInbox, until } from '../../src/testing/contract/handling.ts'
import { findRedis } from '../redis/find-redis.ts'
import { RedisServer } from '../redis/redis-server.ts'

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

  const queue = () => `queue ${crypto.randomUUID()}`
  const inboxOf = (options: Partial<BullmqInboxOptions> = {}) =>
    bullmqInbox({ connection: server.url, queue: queue(), ...options })
  const end = (inbox: Inbox, calls: Calls) => {
    calls.finishAll()
    return inbox.close({ timeoutMs: 500 })
  }

  test('accepts without being started, for another process to handle', async () => {
    const name = queue()
    const front = inboxOf({ queue: name, handles: false })
    expect(await front.accept(eventOf('one'))).toBe('accepted')
    expect(await front.stats()).toMatchObject({ waiting: 1 })
    const back = inboxOf({ queue: name })
    const calls = await startInbox(back)
    const call = await calls.next()
    expect(call.event).toEqual(eventOf('one').event)
    await end(back, calls)
    expect(await front.accept(eventOf('one'))).toBe('duplicate')
    await front.close()
  })

  test('handles nothing where it is told not to', async () => {
    const inbox = inboxOf({ handles: false })
    const handle = vi.fn()
    inbox.start(handle, { debug() {}, info() {}, warn() {}, error() {} })
    await inbox.accept(eventOf('one'))
    expect(await inbox.stats()).toEqual({ waiting: 1, running: 0, retrying: 0, deadLetters: 0 })
    expect(await inbox.close()).toEqual({ unfinished: [] })
    expect(handle).not.toHaveBeenCalled()
  })

  test('lets one of many processes accept an event', async () => {
    const name = queue()
    const inboxes = Array.from({ length: 5 }, () => inboxOf({ queue: name }))
    const answers = await Promise.all(
      inboxes.flatMap((inbox) => Array.from({ length: 20 }, () => inbox.accept(eventOf('one')))),
    )
    expect(answers.filter((answer) => answer === 'accepted').length).toBe(1)
    expect(answers.filter((answer) => answer === 'duplicate').length).toBe(99)
    await Promise.all(inboxes.map((inbox) => inbox.close()))
  })

  test('knows an event for as long as it waits, and for its time from then on', async () => {
    const name = queue()
    const inbox = inboxOf({ queue: name, ttlMs: 300 })
    await inbox.accept(eventOf('one'))
    const [key] = await redis.keys(`bull:${name}:de:*`)
    expect(await redis.pttl(key as string)).toBe(-1)
    const calls = await startInbox(inbox)
    const call = await calls.next()
    expect(await redis.pttl(key as string)).toBe(-1)
    call.finish()
    await until(async () => (await inbox.stats()).running === 0)
    expect(await inbox.accept(eventOf('one'))).toBe('duplicate')
    await until(async () => (await redis.exists(key as string)) === 0)
    expect(await inbox.accept(eventOf('one'))).toBe('accepted')
    await end(inbox, calls)
  })

  test('knows a dead letter for as long as it is one, and a discarded one for its time', async () => {
    const name = queue()
    const inbox = inboxOf({ queue: name, ttlMs: 60_000 })
    const calls = await startInbox(inbox)
    await inbox.accept(eventOf('one'))
    const call = await calls.next()
    call.finish({ status: 'dead', completed: [], failures: [{ handler: 'a', message: 'no' }] })
    await until(async () => (await inbox.deadLetters.get('one')) !== undefined)
    const [key] = await redis.keys(`bull:${name}:de:*`)
    expect(await redis.pttl(key as string)).toBeGreaterThan(365 * 86_400_000)
    await inbox.deadLetters.discard('one')
    expect(await inbox.accept(eventOf('one'))).toBe('duplicate')
    expect(await redis.pttl(key as string)).toBeLessThanOrEqual(60_000)
    await end(inbox, calls)
  })

  test('keeps a finished event in less than 300 bytes', async () => {
    const inbox = inboxOf({ timeoutMs: 30_000 })
    let handled = 0
    inbox.start(
      async () => {
        handled++
        return { status: 'done' }
      },
      { debug() {}, info() {}, warn() {}, error() {} },
    )
    const acceptMany = async (count: number) => {
      const until = handled + count
      await Promise.all(Array.from({ length: count }, () => inbox.accept(eventOf(crypto.randomUUID()))))
      await vi.waitUntil(async () => handled === until && (await inbox.stats()).running === 0, { timeout: 30_000 })
    }
    const used = async () => Number(/used_memory:(\d+)/.exec(await redis.info('memory'))?.[1])
    // What the stream of BullMQ's events takes, which is bounded, comes first.
    await acceptMany(2_000)
    const before = await used()
    await acceptMany(5_000)
    const bytes = ((await used()) - before) / 5_000
    console.info(`bullmqInbox: ${Math.round(bytes)} bytes per finished event`)
    expect(bytes).toBeLessThan(300)
    await inbox.close()
  }, 60_000)

  test('does not handle again what was handled by a process that ended before it could end the job', async () => {
    const name = queue()
    // Less than the other process remembers it for.
    const inbox = inboxOf({ queue: name, ttlMs: 1_000 })
    await inbox.accept(eventOf('one'))
    const [job] = (await redis.lrange(`bull:${name}:wait`, 0, -1)) as [string]
    const [key] = (await redis.keys(`bull:${name}:de:*`)) as [string]
    await redis.set(key, 'handled', 'PX', 60_000)
    await redis.hset(`bull:${name}:${job}`, 'ats', 1)
    const handle = vi.fn()
    inbox.start(handle, { debug() {}, info() {}, warn() {}, error() {} })
    await until(async () => (await redis.exists(`bull:${name}:${job}`)) === 0)
    expect(handle).not.toHaveBeenCalled()
    expect(await inbox.accept(eventOf('one'))).toBe('duplicate')
    await inbox.close()
  })

  test('makes a dead letter of an event that ends every process that handles it', async () => {
    const name = queue()
    const inbox = inboxOf({ queue: name })
    await inbox.accept(eventOf('one'))
    const [job] = (await redis.lrange(`bull:${name}:wait`, 0, -1)) as [string]
    await redis.hset(`bull:${name}:${job}`, 'stc', 11)
    const calls = await startInbox(inbox)
    await until(async () => (await inbox.deadLetters.get('one')) !== undefined)
    expect((await inbox.deadLetters.get('one'))?.failures).toEqual([
      { handler: 'none', message: 'its handling was cut off 11 times' },
    ])
    expect(await inbox.deadLetters.replay('one')).toBe(true)
    const call = await calls.next()
    expect(call.event.key).toBe('one')
    await end(inbox, calls)
  })

  test('lists no dead letters where none are asked for', async () => {
    const inbox = inboxOf()
    const calls = await startInbox(inbox)
    await inbox.accept(eventOf('one'))
    ;(await calls.next()).finish({ status: 'dead', completed: [], failures: [{ handler: 'a', message: 'no' }] })
    await until(async () => (await inbox.stats()).deadLetters === 1)
    expect(await inbox.deadLetters.list({ limit: 0 })).toEqual([])
    await end(inbox, calls)
  })

  test.each([[{ some: 'job' }], [null], ['text'], [{ event: { key: 1 } }]])(
    'fails a job of somebody else in its queue once, and goes on: %o',
    async (data) => {
      const name = queue()
      const inbox = inboxOf({ queue: name })
      const error = vi.fn()
      const calls = await startInbox(inbox, { debug() {}, info() {}, warn() {}, error })
      const others = new Queue(name, { connection: { port: server.port } })
      const job = await others.add('foreign', data, { attempts: 5 })
      await until(() => job.isFailed())
      expect(error).toHaveBeenCalledOnce()
      await inbox.accept(eventOf('one'))
      ;(await calls.next()).finish({ status: 'dead', completed: [], failures: [{ handler: 'a', message: 'no' }] })
      await until(async () => (await inbox.stats()).deadLetters === 2)
      expect((await inbox.deadLetters.list()).map(({ key }) => key)).toEqual(['one'])
      await others.close()
      await end(inbox, calls)
    },
  )

  test('takes a dead letter that was retried from elsewhere, such as Bull Board', async () => {
    const name = queue()
    const inbox = inboxOf({ queue: name })
    const calls = await startInbox(inbox)
    await inbox.accept(eventOf('one'))
    ;(await calls.next()).finish({ status: 'dead', completed: ['a'], failures: [{ handler: 'b', message: 'no' }] })
    await until(async () => (await inbox.deadLetters.get('one')) !== undefined)
    const board = new Queue(name, { connection: { port: server.port } })
    const [job] = await board.getFailed()
    expect(job?.failedReason).toBe('b: no')
    await job?.retry()
    const call = await calls.next()
    expect(call.attempt.completed).toEqual(['a'])
    call.finish()
    await until(async () => (await inbox.stats()).running === 0)
    expect(await inbox.stats()).toEqual({ waiting: 0, running: 0, retrying: 0, deadLetters: 0 })
    await board.close()
    await end(inbox, calls)
  })

  test('warns where Redis is set to forget what was acknowledged', async () => {
    const weak = await RedisServer.start({ settings: { appendonly: 'no', 'maxmemory-policy': 'allkeys-lru' } })
    onTestFinished(() => weak.remove())
    const warnings: string[] = []
    const inbox = bullmqInbox({ connection: weak.url })
    const warn = (_: object, message: string) => void warnings.push(message)
    const calls = await startInbox(inbox, { debug() {}, info() {}, warn, error() {} })
    await until(async () => warnings.length === 2)
    expect(warnings).toEqual([expect.stringContaining('appendonly'), expect.stringContaining('noeviction')])
    await end(inbox, calls)
  })

  test('has nothing to warn of where Redis keeps everything', async () => {
    const warn = vi.fn()
    const inbox = inboxOf()
    const calls = await startInbox(inbox, { debug() {}, info() {}, warn, error() {} })
    await inbox.accept(eventOf('one'))
    await inbox.stats()
    await end(inbox, calls)
    expect(warn).not.toHaveBeenCalled()
  })

  test.each([
    [{ connection: undefined as never }],
    [{ connection: 6379 as never }],
    [{ queue: '' }],
    [{ queue: 'a:b' }],
    [{ concurrency: 0 }],
    [{ leaseMs: 1.5 }],
    [{ ttlMs: -1 }],
    [{ timeoutMs: Number.NaN }],
  ])('refuses options that make no sense: %o', (options) => {
    expect(() => bullmqInbox({ connection: server.url, ...options })).toThrow(
      expect.objectContaining({ code: 'invalid_option' }),
    )
  })
})
