import { Queue } from 'bullmq'
import { describe, expect, onTestFinished, test, vi } from 'vitest'
import { type BullmqInboxOptions, bullmqInbox } from '../../src/inbox/bullmq.ts'
import type { Inbox } from '../../src/inbox/inbox.ts'
import type { Logger } from '../../src/internal/logger.ts'
import { type Calls, eventOf, openInbox, until } from '../support/inbox.ts'
import { openWith } from '../support/open-with.ts'
import { ownTime } from '../support/own-time.ts'
import { findRedis } from '../support/redis/find-redis.ts'
import { RedisServer } from '../support/redis/redis-server.ts'
import { redisTests } from '../support/redis/redis-tests.ts'
import { silent } from '../support/silent.ts'
import { untyped } from '../support/untyped.ts'

describe.skipIf(!findRedis())('bullmqInbox', () => {
  const redis = redisTests()

  const queue = () => `queue ${crypto.randomUUID()}`
  const definitionOf = (options: Partial<BullmqInboxOptions> = {}) =>
    bullmqInbox({ connection: redis.server.url, queue: queue(), ...options })
  const open = (options?: Partial<BullmqInboxOptions>, logger?: Logger) => openInbox(definitionOf(options), logger)
  /** Opens an inbox that accepts events and handles none. */
  const openFront = (options?: Partial<BullmqInboxOptions>) => open({ ...options, handles: false }).inbox
  const end = (inbox: Inbox, calls: Calls) => {
    calls.finishAll()
    return inbox.close({ timeoutMs: 500 })
  }

  test('accepts events for another process to handle if it handles none', async () => {
    const name = queue()
    const front = openFront({ queue: name })
    expect(await front.accept(eventOf('one'))).toBe('accepted')
    expect(await front.stats()).toMatchObject({ waiting: 1 })
    const { inbox: back, calls } = open({ queue: name })
    const call = await calls.next()
    expect(call.event).toEqual(eventOf('one').event)
    await end(back, calls)
    expect(await front.accept(eventOf('one'))).toBe('duplicate')
    await front.close()
  })

  test('handles nothing with handles: false', async () => {
    const handle = vi.fn()
    const inbox = openWith(definitionOf({ handles: false }), handle)
    await inbox.accept(eventOf('one'))
    expect(await inbox.stats()).toMatchObject({ waiting: 1, running: 0, retrying: 0, deadLetters: 0 })
    expect(await inbox.close()).toEqual({ unfinished: [] })
    expect(handle).not.toHaveBeenCalled()
  })

  test('lets one of many processes accept an event', async () => {
    const name = queue()
    const inboxes = Array.from({ length: 5 }, () => openFront({ queue: name }))
    const answers = await Promise.all(
      inboxes.flatMap((inbox) => Array.from({ length: 20 }, () => inbox.accept(eventOf('one')))),
    )
    expect(answers.filter((answer) => answer === 'accepted').length).toBe(1)
    expect(answers.filter((answer) => answer === 'duplicate').length).toBe(99)
    await Promise.all(inboxes.map((inbox) => inbox.close()))
  })

  test('remembers an event while it waits, and for ttlMs after it was handled', async () => {
    const name = queue()
    const front = openFront({ queue: name, ttlMs: 300 })
    await front.accept(eventOf('one'))
    const [key] = await redis.client.keys(`webhooks:${name}:key:*`)
    expect(await redis.client.pttl(key as string)).toBeGreaterThan(300 * 86_400_000)
    await front.close()
    const { inbox, calls } = open({ queue: name, ttlMs: 300 })
    const call = await calls.next()
    expect(await redis.client.pttl(key as string)).toBeGreaterThan(300 * 86_400_000)
    call.finish()
    await until(async () => (await inbox.stats()).running === 0)
    expect(await inbox.accept(eventOf('one'))).toBe('duplicate')
    await until(async () => (await redis.client.exists(key as string)) === 0)
    expect(await inbox.accept(eventOf('one'))).toBe('accepted')
    await end(inbox, calls)
  })

  test('remembers a dead letter while it is one, and for ttlMs after it was discarded', async () => {
    const name = queue()
    const { inbox, calls } = open({ queue: name, ttlMs: 60_000 })
    await inbox.accept(eventOf('one'))
    const call = await calls.next()
    call.finish({ status: 'dead', completed: [], failures: [{ handler: 'a', message: 'no' }] })
    await until(async () => (await inbox.deadLetters.get('one')) !== undefined)
    expect(await inbox.accept(eventOf('one'))).toBe('duplicate')
    const [key] = await redis.client.keys(`webhooks:${name}:key:*`)
    await inbox.deadLetters.discard('one')
    expect(await inbox.accept(eventOf('one'))).toBe('duplicate')
    expect(await redis.client.pttl(key as string)).toBeLessThanOrEqual(60_000)
    await end(inbox, calls)
  })

  test('keeps a finished event in less than 300 bytes', async () => {
    let handled = 0
    const inbox = openWith(definitionOf({ timeoutMs: 30_000 }), async () => {
      handled++
      return { status: 'done' }
    })
    const acceptMany = async (count: number) => {
      const until = handled + count
      await Promise.all(Array.from({ length: count }, () => inbox.accept(eventOf(crypto.randomUUID()))))
      await vi.waitUntil(async () => handled === until && (await inbox.stats()).running === 0)
    }
    const used = async () => Number(/used_memory:(\d+)/.exec(await redis.client.info('memory'))?.[1])
    // The stream of BullMQ's events, which is bounded, is filled first.
    await acceptMany(2_000)
    const before = await used()
    await acceptMany(5_000)
    const bytes = ((await used()) - before) / 5_000
    console.info(`bullmqInbox: ${Math.round(bytes)} bytes per finished event`)
    expect(bytes).toBeLessThan(300)
    await inbox.close()
  })

  test('does not handle an event again whose process ended between handling it and ending the job', async () => {
    const name = queue()
    const front = openFront({ queue: name })
    await front.accept(eventOf('one'))
    await front.close()
    const [job] = (await redis.client.lrange(`bull:${name}:wait`, 0, -1)) as [string]
    const [key] = (await redis.client.keys(`webhooks:${name}:key:*`)) as [string]
    await redis.client.set(key, 'handled', 'PX', 60_000)
    const handle = vi.fn()
    // The other process remembers the event for longer, and its time counts.
    const inbox = openWith(definitionOf({ queue: name, ttlMs: 1_000 }), handle)
    await until(async () => (await redis.client.exists(`bull:${name}:${job}`)) === 0)
    expect(handle).not.toHaveBeenCalled()
    expect(await inbox.accept(eventOf('one'))).toBe('duplicate')
    await inbox.close()
  })

  /** Opens an inbox with an event that was cut off as often as an event may be. */
  const openCutOff = async (name: string) => {
    const front = openFront({ queue: name })
    await front.accept(eventOf('one'))
    await front.close()
    const [job] = (await redis.client.lrange(`bull:${name}:wait`, 0, -1)) as [string]
    const key = `bull:${name}:${job}`
    const stored = JSON.parse((await redis.client.hget(key, 'data')) as string)
    const progress = { attempts: 0, completed: [], failedAttempts: [], crashes: 10, stalls: 0 }
    await redis.client.hset(key, { data: JSON.stringify({ ...stored, progress }), stc: 11 })
    return open({ queue: name })
  }

  test('makes a dead letter of an event that ends every process that handles it', async () => {
    const { inbox, calls, deadLettered } = await openCutOff(queue())
    await until(async () => (await inbox.deadLetters.get('one')) !== undefined)
    expect(deadLettered).toEqual(['one'])
    expect((await inbox.deadLetters.get('one'))?.failures).toEqual([
      { handler: 'none', message: 'the process crashed 11 times while handling it' },
    ])
    expect(await inbox.deadLetters.replay('one')).toBe(true)
    const call = await calls.next()
    expect(call.event.key).toBe('one')
    await end(inbox, calls)
  })

  test('lists no dead letters for a limit of 0', async () => {
    const { inbox, calls } = open()
    await inbox.accept(eventOf('one'))
    ;(await calls.next()).finish({ status: 'dead', completed: [], failures: [{ handler: 'a', message: 'no' }] })
    await until(async () => (await inbox.stats()).deadLetters === 1)
    expect(await inbox.deadLetters.list({ limit: 0 })).toEqual([])
    await end(inbox, calls)
  })

  test.each([
    [{ some: 'job' }],
    [null],
    ['text'],
    [{ event: { key: 1 }, receivedAt: '2026-03-01T12:00:00.000Z' }],
    [{ event: { key: 'one' }, receivedAt: 1 }],
  ])('fails a job of another program in its queue once, and continues: %o', async (data) => {
    const name = queue()
    const error = vi.fn()
    const { inbox, calls } = open({ queue: name }, { ...silent, error })
    const others = new Queue(name, { connection: { port: redis.server.port } })
    const job = await others.add('foreign', data, { attempts: 5 })
    await until(() => job.isFailed())
    expect(error).toHaveBeenCalledOnce()
    await inbox.accept(eventOf('one'))
    ;(await calls.next()).finish({ status: 'dead', completed: [], failures: [{ handler: 'a', message: 'no' }] })
    await until(async () => (await inbox.stats()).deadLetters === 2)
    expect((await inbox.deadLetters.list()).map(({ key }) => key)).toEqual(['one'])
    await others.close()
    await end(inbox, calls)
  })

  test('handles a dead letter that another program, such as Bull Board, has retried', async () => {
    const name = queue()
    const { inbox, calls } = open({ queue: name })
    await inbox.accept(eventOf('one'))
    ;(await calls.next()).finish({ status: 'retry', delayMs: 1, completed: [], failures: [] })
    ;(await calls.next()).finish({ status: 'dead', completed: ['a'], failures: [{ handler: 'b', message: 'no' }] })
    await until(async () => (await inbox.deadLetters.get('one')) !== undefined)
    const board = new Queue(name, { connection: { port: redis.server.port } })
    const [job] = await board.getFailed()
    expect(job?.failedReason).toBe('b: no')
    await job?.retry()
    const call = await calls.next()
    expect(call.attempt.completed).toEqual(['a'])
    // It gets as many attempts as a new event.
    expect(call.attempt.number).toBe(1)
    call.finish()
    await until(async () => (await inbox.stats()).running === 0)
    expect(await inbox.stats()).toEqual({ waiting: 0, running: 0, retrying: 0, deadLetters: 0 })
    await board.close()
    await end(inbox, calls)
  })

  test('handles an event that is dead by cut-offs once another program, such as Bull Board, has retried it', async () => {
    const name = queue()
    const { inbox, calls } = await openCutOff(name)
    await until(async () => (await inbox.deadLetters.get('one')) !== undefined)
    const board = new Queue(name, { connection: { port: redis.server.port } })
    const [job] = await board.getFailed()
    await job?.retry()
    const call = await calls.next()
    expect(call.attempt.number).toBe(1)
    await board.close()
    await end(inbox, calls)
  })

  test('makes a dead letter again of an event whose process ended while it made one', async () => {
    const name = queue()
    const front = openFront({ queue: name })
    await front.accept(eventOf('one'))
    await front.close()
    const [job] = (await redis.client.lrange(`bull:${name}:wait`, 0, -1)) as [string]
    const failures = [{ handler: 'a', message: 'no' }]
    const key = `bull:${name}:${job}`
    const stored = JSON.parse((await redis.client.hget(key, 'data')) as string)
    const progress = { attempts: 1, completed: ['b'], failures, failedAttempts: [], crashes: 0, stalls: 0 }
    await redis.client.hset(key, { data: JSON.stringify({ ...stored, progress }), stc: 1 })
    const handle = vi.fn()
    const inbox = openWith(definitionOf({ queue: name }), handle)
    await until(async () => (await inbox.deadLetters.get('one')) !== undefined)
    expect(await inbox.deadLetters.get('one')).toMatchObject({ completed: ['b'], failures })
    expect(handle).not.toHaveBeenCalled()
    await inbox.close()
  })

  test('does not run a handler again that succeeded, although another one was removed meanwhile', async () => {
    const { inbox, calls } = open()
    await inbox.accept(eventOf('one'))
    ;(await calls.next()).finish({ status: 'retry', delayMs: 1, completed: ['a', 'removed'], failures: [] })
    ;(await calls.next()).finish({ status: 'retry', delayMs: 1, completed: ['a', 'new'], failures: [] })
    const call = await calls.next()
    expect(call.attempt.completed).toEqual(['a', 'removed', 'new'])
    call.finish({ status: 'dead', completed: ['a', 'new'], failures: [{ handler: 'c', message: 'no' }] })
    await until(async () => (await inbox.stats()).deadLetters === 1)
    expect((await inbox.deadLetters.get('one'))?.completed).toEqual(['a', 'removed', 'new'])
    await end(inbox, calls)
  })

  test('releases running events when it closes: the next process starts them immediately, and no crash is counted', async () => {
    const name = queue()
    const { inbox, calls: hanging } = open({ queue: name })
    const keys = ['one', 'two', 'three']
    for (const key of keys) await inbox.accept(eventOf(key))
    for (const _ of keys) await hanging.next()
    const { unfinished } = await inbox.close({ timeoutMs: 20 })
    expect(unfinished.map(({ event }) => event.key).sort()).toEqual([...keys].sort())
    const { inbox: next, calls } = open({ queue: name })
    const elapsed = ownTime()
    const started = await Promise.all(keys.map(() => calls.next()))
    expect(elapsed()).toBeLessThan(1_000)
    expect(started.map(({ event, attempt }) => [event.key, attempt.number]).sort()).toEqual(
      keys.map((key) => [key, 1]).sort(),
    )
    for (const id of await redis.client.lrange(`bull:${name}:active`, 0, -1))
      expect(await redis.client.hget(`bull:${name}:${id}`, 'stc')).toBe(null)
    await end(next, calls)
    hanging.finishAll()
  })

  test('warns if the settings of Redis can lose acknowledged events', async () => {
    const weak = await RedisServer.start({ settings: { appendonly: 'no', 'maxmemory-policy': 'allkeys-lru' } })
    onTestFinished(() => weak.remove())
    const warnings: string[] = []
    const warn = (_: object, message: string) => void warnings.push(message)
    const { inbox, calls } = open({ connection: weak.url }, { ...silent, warn })
    await until(async () => warnings.length === 2)
    expect(warnings).toEqual([expect.stringContaining('appendonly'), expect.stringContaining('noeviction')])
    await end(inbox, calls)
  })

  test('does not warn if Redis keeps everything', async () => {
    const warn = vi.fn()
    const { inbox, calls } = open({}, { ...silent, warn })
    await inbox.accept(eventOf('one'))
    await inbox.stats()
    await end(inbox, calls)
    expect(warn).not.toHaveBeenCalled()
  })

  test.each([
    [{ connection: untyped(undefined) }],
    [{ connection: untyped(6379) }],
    [{ connection: '' }],
    [{ connection: 'http://127.0.0.1:6379' }],
    [{ queue: '' }],
    [{ queue: 'a:b' }],
    [{ concurrency: 0 }],
    [{ leaseMs: 1.5 }],
    [{ ttlMs: -1 }],
    [{ timeoutMs: Number.NaN }],
  ])('throws for an invalid option: %o', (options) => {
    expect(() => bullmqInbox({ connection: redis.server.url, ...options })).toThrow(
      expect.objectContaining({ code: 'invalid_option' }),
    )
  })
})
