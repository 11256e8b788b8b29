import { once } from 'node:events'
import { setTimeout as sleep } from 'node:timers/promises'
import { Redis } from 'ioredis'
import { afterEach, beforeEach, describe, expect, onTestFinished, test, vi } from 'vitest'
import { bullmqInbox } from '../../../src/inbox/bullmq.ts'
import type { Handle, Inbox } from '../../../src/inbox/inbox.ts'
import { createReceiver, unverified } from '../../../src/index.ts'
import { deliver, samplePayload } from '../../../src/testing/index.ts'
import { type Calls, eventOf, openInbox, until } from '../../support/inbox.ts'
import { openWith } from '../../support/open-with.ts'
import { findRedis } from '../../support/redis/find-redis.ts'
import { RedisServer } from '../../support/redis/redis-server.ts'
import { silent } from '../../support/silent.ts'
import { TcpProxy } from '../../support/tcp-proxy.ts'
import { ReceiverProcess, type ReceiverTask } from './receiver-process.ts'

const leaseMs = 600
const queue = 'shared'

/** Waits for an attempt at an event whose lease was lost, which BullMQ looks for at its own intervals. */
const takenOver = (calls: Calls) => calls.next().catch(() => calls.next())

describe.skipIf(!findRedis())('an event that a process holds in bullmqInbox', () => {
  let server: RedisServer
  let held: ReceiverProcess | undefined
  const inboxes: Inbox[] = []
  beforeEach(async () => {
    server = await RedisServer.start()
  })
  afterEach(async () => {
    for (const inbox of inboxes.splice(0)) await inbox.close({ timeoutMs: 100 })
    await held?.kill()
    await server?.remove()
  })

  const definitionOf = (handles = true) => bullmqInbox({ connection: server.url, queue, leaseMs, handles })
  /** Opens an inbox that is closed after the test. */
  const open = (handles?: boolean) => {
    const opened = openInbox(definitionOf(handles))
    inboxes.push(opened.inbox)
    return opened
  }
  const openHandling = (handle: Handle) => {
    const inbox = openWith(definitionOf(), handle)
    inboxes.push(inbox)
    return inbox
  }

  /** Starts a process that handles an event: its handler `first` has succeeded, and `second` waits. */
  const holding = async (key: string) => {
    const task: ReceiverTask = { redis: server.url, queue, handling: 'held', leaseMs }
    held = await ReceiverProcess.start(task)
    await open(false).inbox.accept(eventOf(key))
    await held.saying((message) => message.did === 'second' && message.key === key)
    return held
  }

  test('is taken over when the process is killed, and skips the handler that had succeeded', async () => {
    const process = await holding('one')
    await process.kill()
    const { inbox: other, calls } = open()
    const call = await takenOver(calls)
    expect(call.event.key).toBe('one')
    expect(call.attempt.completed).toEqual(['first'])
    // The attempt was cut off, so it does not count as failed.
    expect(call.attempt.number).toBe(1)
    call.finish()
    await until(async () => (await other.stats()).running === 0)
    expect(await other.accept(eventOf('one'))).toBe('duplicate')
  })

  test('stays with a process that handles it for longer than a lease', async () => {
    const process = await holding('one')
    const handle = vi.fn()
    const other = openHandling(handle)
    await sleep(leaseMs * 4)
    process.tell({ finish: 'one' })
    await until(async () => (await other.stats()).running === 0)
    expect(handle).not.toHaveBeenCalled()
    expect(process.said.filter(({ did }) => did === 'abort')).toEqual([])
  })

  test('is lost by a process that was paused: its signal is aborted and its completion has no effect', async () => {
    const process = await holding('one')
    process.pause()
    const { inbox: other, calls } = open()
    const call = await takenOver(calls)
    expect(call.event.key).toBe('one')
    process.resume()
    await process.saying((message) => message.did === 'abort' && message.reason === 'lease_lost')
    process.tell({ finish: 'one' })
    await sleep(leaseMs)
    expect(await other.stats()).toMatchObject({ running: 1 })
    expect(call.attempt.aborted).toBe(false)
    // Otherwise the process that was paused could take the retry.
    await process.kill()
    call.finish({ status: 'retry', delayMs: 10, completed: ['first'], failures: [] })
    const again = await calls.next()
    expect(again.attempt.number).toBe(2)
    again.finish()
    await until(async () => (await other.stats()).running === 0)
  })

  test('is not completed by a process that lost its lease without noticing', async () => {
    const { inbox, calls } = open()
    await inbox.accept(eventOf('one'))
    const call = await calls.next()
    const redis = new Redis(server.port)
    const [lock] = (await redis.keys('*:lock')) as [string]
    await redis.set(lock, 'of another process', 'PX', 60_000)
    call.finish()
    await sleep(leaseMs)
    expect(await inbox.stats()).toMatchObject({ running: 1 })
    redis.disconnect()
  })

  test('is handled again by the same process after its lease ran out unnoticed', async () => {
    const { inbox, calls } = open()
    await inbox.accept(eventOf('one'))
    const first = await calls.next()
    const redis = new Redis(server.port)
    const [job] = (await redis.lrange(`bull:${queue}:active`, 0, -1)) as [string]
    // BullMQ does this to a job without a lease, before this process renews the lease.
    await redis
      .multi()
      .del(`bull:${queue}:${job}:lock`)
      .lrem(`bull:${queue}:active`, 1, job)
      .rpush(`bull:${queue}:wait`, job)
      .zadd(`bull:${queue}:marker`, 0, '0')
      .exec()
    const second = await takenOver(calls)
    expect(first.attempt.signal.reason).toMatchObject({ code: 'lease_lost' })
    expect(second.attempt.number).toBe(1)
    first.finish()
    await sleep(leaseMs * 3)
    expect(second.attempt.aborted).toBe(false)
    expect(await redis.pttl(`bull:${queue}:${job}:lock`)).toBeGreaterThan(0)
    expect(await inbox.stats()).toMatchObject({ waiting: 0, running: 1, retrying: 0 })
    second.finish()
    await until(async () => (await inbox.stats()).running === 0)
    expect(await inbox.accept(eventOf('one'))).toBe('duplicate')
    redis.disconnect()
  })

  test('is taken over from an inbox that closed before the handler ended', async () => {
    const { inbox: first, calls: hanging } = open()
    await first.accept(eventOf('one'))
    const { attempt } = await hanging.next()
    const { unfinished } = await first.close({ timeoutMs: 50 })
    expect(unfinished.map(({ event, state }) => [event.key, state])).toEqual([['one', 'running']])
    expect(attempt.signal.reason).toMatchObject({ code: 'closing' })
    const { calls } = open()
    const call = await calls.next()
    expect(call.event.key).toBe('one')
    calls.finishAll()
    hanging.finishAll()
  })

  test('is stopped when its lease has ended without an answer from Redis, before another process can have it', async () => {
    const { inbox, calls } = open()
    await inbox.accept(eventOf('one'))
    const { attempt } = await calls.next()
    server.pause()
    await once(attempt.signal, 'abort')
    server.resume()
    expect(attempt.signal.reason).toMatchObject({ code: 'lease_lost' })
    calls.finishAll()
    await until(async () => (await inbox.stats()).running === 0)
  })

  test('starts no handler after its lease in a process that is cut off, and its handlers start in another', async () => {
    const proxy = await TcpProxy.start(server.port)
    onTestFinished(() => proxy.close())
    const starts: string[] = []
    const aborted: unknown[] = []
    let finish = () => {}
    const first = new Promise<void>((resolve) => {
      finish = resolve
    })
    const receiverAt = (name: string, port: number) => {
      const inbox = bullmqInbox({ connection: { port }, queue, leaseMs, concurrency: 4 })
      const receiver = createReceiver({ verify: unverified(), inbox, logger: silent })
      inboxes.push(receiver.inbox)
      return receiver
        .onAny(
          ({ mediaId }, { signal }) => {
            starts.push(`${name} a ${mediaId}`)
            signal.addEventListener('abort', () => aborted.push(signal.reason.code))
            if (name === 'cut off') return first
          },
          { name: 'a' },
        )
        .onAny(({ mediaId }) => void starts.push(`${name} b ${mediaId}`), { name: 'b' })
    }
    const cutOff = receiverAt('cut off', proxy.port)
    for (const media_id of ['1', '2', '3', '4', '5', '6'])
      await deliver(cutOff, samplePayload('encoding.finished', { media_id }))
    await until(async () => starts.length === 4)
    proxy.mute()
    await until(async () => aborted.length === 4)
    finish()
    receiverAt('other', server.port)
    await until(async () => starts.filter((start) => start.startsWith('other b')).length === 6)
    await proxy.breakFor(0)
    await sleep(200)
    expect(aborted).toEqual(Array(4).fill('lease_lost'))
    expect(starts.filter((start) => start.startsWith('cut off'))).toHaveLength(4)
  })

  test('is handled once although its claim reached Redis only after a lease', async () => {
    const proxy = await TcpProxy.start(server.port)
    onTestFinished(() => proxy.close())
    const sent = proxy.delay('lockDuration')
    const opened = openInbox(bullmqInbox({ connection: { port: proxy.port }, queue, leaseMs }))
    inboxes.push(opened.inbox)
    const passOn = await sent
    await open(false).inbox.accept(eventOf('one'))
    await sleep(leaseMs * 1.5)
    await passOn()
    const { attempt } = await opened.calls.next()
    expect(attempt.aborted).toBe(false)
    opened.calls.finishAll()
    await until(async () => (await opened.inbox.stats()).running === 0)
    expect(await opened.inbox.stats()).toMatchObject({ waiting: 0, retrying: 0, deadLetters: 0 })
  })

  test('is recorded after an outage that was longer than its lease, if its handlers had ended', async () => {
    const { inbox, calls } = open()
    await inbox.accept(eventOf('one'))
    const { attempt, finish } = await calls.next()
    server.pause()
    finish()
    await sleep(leaseMs * 2)
    expect(attempt.aborted).toBe(false)
    server.resume()
    await until(async () => (await inbox.stats()).running === 0)
    expect(await inbox.accept(eventOf('one'))).toBe('duplicate')
  })

  test('is retried when it is due, even if the inbox was closed and opened in between', async () => {
    const { inbox: first, calls: failing } = open()
    await first.accept(eventOf('one'))
    const failed = await failing.next()
    const failedAt = Date.now()
    failed.finish({ status: 'retry', delayMs: 1_500, completed: ['a'], failures: [] })
    await first.close()
    const { inbox: second, calls } = open()
    expect(await second.stats()).toMatchObject({ retrying: 1 })
    const call = await calls.next()
    expect(Date.now() - failedAt).toBeGreaterThanOrEqual(1_490)
    expect(call.attempt.number).toBe(2)
    expect(call.attempt.completed).toEqual(['a'])
    calls.finishAll()
  })

  test('is handled once even if inboxes close and open under load', async () => {
    const runs = new Map<string, number>()
    const openCounting = () =>
      openHandling(async ({ event: { key } }) => {
        await sleep(5)
        runs.set(key, (runs.get(key) ?? 0) + 1)
        return { status: 'done' }
      })
    const accepted: string[] = []
    let current = openCounting()
    let stopped = false
    const caller = async () => {
      while (!stopped) {
        const key = crypto.randomUUID()
        try {
          await current.accept(eventOf(key))
          accepted.push(key)
        } catch (error) {
          // The event was not accepted, and so not acknowledged.
          expect(error).toMatchObject({ code: expect.stringMatching(/closing|unavailable/) })
        }
      }
    }
    const callers = Promise.all(Array.from({ length: 8 }, caller))
    for (let i = 0; i < 4; i++) {
      await sleep(150)
      const leaving = current
      current = openCounting()
      expect(await leaving.close()).toEqual({ unfinished: [] })
    }
    stopped = true
    await callers
    const last = current
    await until(async () => {
      const { waiting, running } = await last.stats()
      return waiting + running === 0
    })
    expect(accepted.length).toBeGreaterThan(50)
    expect(accepted.filter((key) => runs.get(key) !== 1)).toEqual([])
  })
})
