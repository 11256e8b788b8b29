import { setTimeout as sleep } from 'node:timers/promises'
import { inspect } from 'node:util'
import { Redis } from 'ioredis'
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest'
import { type BullmqInboxOptions, bullmqInbox } from '../../../src/inbox/bullmq.ts'
import type { Handle, Inbox } from '../../../src/inbox/inbox.ts'
import { createReceiver, type Logger, unverified } from '../../../src/index.ts'
import { deliver, samplePayload } from '../../../src/testing/index.ts'
import { eventOf, openInbox } from '../../support/inbox.ts'
import { openWith } from '../../support/open-with.ts'
import { ownTime } from '../../support/own-time.ts'
import { recordingLogger } from '../../support/recording-logger.ts'
import { findRedis } from '../../support/redis/find-redis.ts'
import { RedisServer } from '../../support/redis/redis-server.ts'
import { silent } from '../../support/silent.ts'

// Redis hands an event to another worker when this time has passed since its worker's connection ended.
const leaseMs = 2_000

const unavailable = expect.objectContaining({ code: 'unavailable' })

/** Accepts events at full speed until it is stopped, and returns those that were accepted. */
function acceptMany(inbox: Inbox, callers = 16) {
  const accepted: string[] = []
  let stopped = false
  const caller = async () => {
    while (!stopped) {
      const key = crypto.randomUUID()
      try {
        await inbox.accept(eventOf(key))
        accepted.push(key)
      } catch {
        await sleep(5)
      }
    }
  }
  const done = Promise.all(Array.from({ length: callers }, caller))
  return async () => {
    stopped = true
    await done
    return { accepted }
  }
}

/** Opens an inbox that handles events immediately, and counts how often it handles each. */
function openCounting(options: BullmqInboxOptions, logger?: Logger) {
  const runs = new Map<string, number>()
  const count: Handle = async ({ event: { key } }) => {
    runs.set(key, (runs.get(key) ?? 0) + 1)
    return { status: 'done' }
  }
  return { inbox: openWith(bullmqInbox(options), count, logger), runs }
}

async function accepts(inbox: Inbox, key: string): Promise<boolean> {
  try {
    await inbox.accept(eventOf(key))
    return true
  } catch {
    return false
  }
}

const isEmpty = async (inbox: Inbox) => {
  const { waiting, running, retrying } = await inbox.stats()
  return waiting + running + retrying === 0
}
const becomesEmpty = (inbox: Inbox) => vi.waitUntil(() => isEmpty(inbox).catch(() => false), { interval: 50 })

describe.skipIf(!findRedis())('bullmqInbox', () => {
  let server: RedisServer
  let inbox: Inbox | undefined
  beforeEach(async () => {
    inbox = undefined
    server = await RedisServer.start()
  })
  /** Opens an inbox that counts its events, and that is closed with the test. */
  const open = (options: Partial<BullmqInboxOptions> = {}, logger?: Logger) => {
    const opened = openCounting({ connection: server.url, ...options }, logger)
    inbox = opened.inbox
    return opened
  }
  afterEach(async () => {
    await inbox?.close({ timeoutMs: 500 })
    await server?.remove()
  })

  test('is unavailable within timeoutMs without Redis, and closes soon, if it has handled events and accepted none', async () => {
    const lines: string[] = []
    const error = (_: object, line: string) => void lines.push(line)
    const { inbox, runs } = open({ leaseMs, timeoutMs: 200 }, { ...silent, error })
    const { inbox: front } = openCounting({ connection: server.url, handles: false })
    await front.accept(eventOf('one'))
    await vi.waitUntil(() => runs.size === 1)
    await becomesEmpty(front)
    await front.close()
    await server.stop()
    await vi.waitUntil(() => lines.length > 0)
    expect(lines[0]).toMatch(/^there is no connection to Redis \(.*ECONNREFUSED.*\); deliveries are answered 503/)

    const elapsed = ownTime()
    await expect(inbox.accept(eventOf('late'))).rejects.toEqual(unavailable)
    expect(elapsed()).toBeLessThan(1_900)
    await inbox.close()
    // Well before the 10 s that running events would have.
    expect(elapsed()).toBeLessThan(8_000)
  })

  test('reports an event as unfinished, and logs its key once, that was handled and could not be recorded before it closed', async () => {
    const { logger, lines } = recordingLogger('warn')
    const { inbox: opened, calls } = openInbox(bullmqInbox({ connection: server.url, leaseMs }), logger)
    await opened.accept(eventOf('one'))
    const call = await calls.next()
    await server.stop()
    call.finish()
    await vi.waitUntil(() => lines.some(({ message }) => message.startsWith('there is no connection')))
    const { unfinished } = await opened.close({ timeoutMs: 100 })
    expect(unfinished.map(({ event }) => event.key)).toEqual(['one'])
    const closed = lines.filter(
      ({ message, details }) => message.startsWith('the inbox closed') && details['key'] === 'one',
    )
    expect(closed).toHaveLength(1)
  })

  test('is unavailable within timeoutMs while Redis is down, and recovers by itself when it is back', async () => {
    const { inbox, runs } = open({ leaseMs, timeoutMs: 300 })
    await inbox.accept(eventOf('before'))
    await becomesEmpty(inbox)
    await server.stop('SIGTERM')
    const elapsed = ownTime()
    const steps = [
      ...Array.from({ length: 100 }, async () => inbox.accept(eventOf('during'))),
      inbox.stats(),
      inbox.deadLetters.list(),
    ]
    for (const step of await Promise.allSettled(steps))
      expect(step).toEqual({ status: 'rejected', reason: unavailable })
    expect(elapsed()).toBeLessThan(1_900)
    await server.restart()
    await vi.waitUntil(() => accepts(inbox, 'after'))
    await becomesEmpty(inbox)
    expect(runs.get('after')).toBe(1)
    expect(await inbox.accept(eventOf('before'))).toBe('duplicate')
  })

  /** Logs into an array, with all that an error holds. */
  const logInto = (lines: string[]): Logger => {
    const line = (details: object, message: string) => void lines.push(`${message} ${inspect(details, { depth: 10 })}`)
    return { debug() {}, info: line, warn: line, error: line }
  }

  test('logs why there is no connection, once for each outage', async () => {
    const lines: string[] = []
    const { inbox } = open({ timeoutMs: 500 }, logInto(lines))
    // No event: Redis could end before it has said that the event is recorded, and BullMQ would report that.
    await inbox.stats()
    for (let outage = 1; outage <= 2; outage++) {
      await server.stop()
      await expect(inbox.accept(eventOf('one'))).rejects.toEqual(unavailable)
      expect(lines.filter((line) => line.includes('ECONNREFUSED')).length).toBe(outage)
      await server.restart()
      await vi.waitUntil(() => lines.filter((line) => line.includes('is restored')).length === outage)
    }
    expect(lines).toEqual(Array(4).fill(expect.stringMatching(/ECONNREFUSED|is restored/)))
  })

  test('logs nothing about a connection that is back immediately', async () => {
    const lines: string[] = []
    const { inbox } = open({}, logInto(lines))
    await inbox.accept(eventOf('one'))
    await server.command('CLIENT', 'KILL', 'TYPE', 'normal', 'SKIPME', 'yes')
    await inbox.accept(eventOf('two'))
    await sleep(1_500)
    expect(lines).toEqual([])
  })

  test('logs the name of a host that does not exist', async () => {
    const lines: string[] = []
    open({ connection: 'redis://redis.invalid:6379' }, logInto(lines))
    await vi.waitUntil(() => lines.some((line) => /redis\.invalid/.test(line)))
    expect(lines.filter((line) => /E(NOTFOUND|AI_AGAIN)/.test(line)).length).toBe(1)
  })

  test('logs that a password is wrong, without the password, and works once it is right', async () => {
    await server.command('CONFIG', 'SET', 'requirepass', 'another')
    const lines: string[] = []
    const password = 'hunter2-secret'
    const { inbox } = open({ connection: { port: server.port, password } }, logInto(lines))
    await expect(inbox.accept(eventOf('one'))).rejects.toEqual(unavailable)
    expect(lines.filter((line) => line.includes('WRONGPASS')).length).toBe(1)
    expect(lines.join()).not.toContain(password)
    const admin = new Redis({ port: server.port, password: 'another' })
    await admin.config('SET', 'requirepass', password)
    admin.disconnect()
    await vi.waitUntil(() => accepts(inbox, 'one'))
  })

  test('keeps events out of the errors that it throws', async () => {
    const { inbox } = open({ timeoutMs: 300 })
    await inbox.accept(eventOf('one'))
    await server.command('CONFIG', 'SET', 'maxmemory', '1')
    const error = await Promise.resolve(inbox.accept(eventOf('two'))).catch((error) => error)
    expect(error).toEqual(unavailable)
    expect(inspect(error, { depth: 10 })).toContain('OOM')
    expect(inspect(error, { depth: 10 })).not.toContain('映画')
    await server.command('CONFIG', 'SET', 'maxmemory', '0')
  })

  test('makes a receiver answer 503 with Retry-After while Redis is down', async () => {
    const definition = bullmqInbox({ connection: server.url })
    const receiver = createReceiver({ verify: unverified(), inbox: definition, logger: silent }).onAny(() => {})
    inbox = receiver.inbox
    expect((await deliver(receiver, samplePayload('encoding.finished'))).status).toBe(200)
    await server.stop()
    const { status, headers } = await deliver(receiver, samplePayload('encoding.finished', { media_id: 'm2' }))
    expect(status).toBe(503)
    expect(headers).toHaveProperty('retry-after')
  })

  test('can be opened before Redis is up, and works once it is', async () => {
    await server.stop()
    const { inbox: opened, calls } = openInbox(bullmqInbox({ connection: server.url, timeoutMs: 100 }))
    inbox = opened
    await expect(opened.accept(eventOf('one'))).rejects.toEqual(unavailable)
    await server.restart()
    await vi.waitUntil(() => accepts(opened, 'one'))
    expect((await calls.next()).event.key).toBe('one')
    calls.finishAll()
  })

  test('is unavailable within timeoutMs while Redis does not answer', async () => {
    const { inbox, runs } = open({ timeoutMs: 1_000 })
    await inbox.accept(eventOf('one'))
    server.pause()
    const elapsed = ownTime()
    await expect(inbox.accept(eventOf('two'))).rejects.toEqual(unavailable)
    expect(elapsed()).toBeLessThan(2_000)
    server.resume()
    await inbox.accept(eventOf('two'))
    await becomesEmpty(inbox)
    expect(runs).toEqual(new Map([...['one', 'two'].map((key) => [key, 1] as const)]))
  })

  test('closes in time while Redis is down', async () => {
    const { inbox, calls } = openInbox(bullmqInbox({ connection: server.url }))
    await inbox.accept(eventOf('one'))
    await calls.next()
    await server.stop()
    const elapsed = ownTime()
    const { unfinished } = await inbox.close({ timeoutMs: 100 })
    expect(unfinished.map(({ event }) => event.key)).toEqual(['one'])
    expect(elapsed()).toBeLessThan(3_000)
    calls.finishAll()
  })

  test('closes in time while Redis hangs, soon if it handles nothing', async () => {
    const idle = openCounting({ connection: server.url, queue: 'idle' }).inbox
    const { inbox, calls } = openInbox(bullmqInbox({ connection: server.url }))
    await inbox.accept(eventOf('one'))
    await calls.next()
    server.pause()
    const elapsed = ownTime()
    await idle.close({ timeoutMs: 60_000 })
    const { unfinished } = await inbox.close({ timeoutMs: 1_000 })
    expect(elapsed()).toBeLessThan(6_000)
    expect(unfinished).toMatchObject([{ event: { key: 'one' }, state: 'running' }])
    calls.finishAll()
    server.resume()
  })

  // With everysec a kill loses the newest writes. An orderly end writes them.
  test.each([
    ['is stopped', 'SIGTERM', 'everysec'],
    ['is killed', 'SIGKILL', 'always'],
  ] as const)('handles each accepted event once although Redis %s under load', async (_, signal, appendfsync) => {
    await server.remove()
    server = await RedisServer.start({ settings: { appendfsync } })
    const { inbox, runs } = open({ leaseMs })
    const stop = acceptMany(inbox)
    for (let i = 0; i < 3; i++) {
      await sleep(300)
      await server.stop(signal)
      await sleep(100)
      await server.restart()
    }
    await sleep(300)
    const { accepted } = await stop()
    await becomesEmpty(inbox)
    expect(accepted.length).toBeGreaterThan(10)
    expect(accepted.filter((key) => runs.get(key) !== 1)).toEqual([])
    expect([...runs.values()].filter((count) => count > 1)).toEqual([])
  })

  test('handles each accepted event once although its connections are cut', async () => {
    const { inbox, runs } = open({ leaseMs })
    const stop = acceptMany(inbox)
    const admin = new Redis(server.port)
    for (let i = 0; i < 10; i++) {
      await sleep(100)
      await admin.call('CLIENT', 'KILL', 'SKIPME', 'yes')
    }
    admin.disconnect()
    const { accepted } = await stop()
    await becomesEmpty(inbox)
    expect(accepted.length).toBeGreaterThan(10)
    expect(accepted.filter((key) => runs.get(key) !== 1)).toEqual([])
    expect([...runs.values()].filter((count) => count > 1)).toEqual([])
  })
})
