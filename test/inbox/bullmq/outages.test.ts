import { setTimeout as sleep } from 'node:timers/promises'
import { Redis } from 'ioredis'
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest'
import { bullmqInbox } from '../../../src/inbox/bullmq.ts'
import type { Handle, Inbox } from '../../../src/inbox/inbox.ts'
import { createReceiver, unverified } from '../../../src/index.ts'
import { eventOf, startInbox } from '../../../src/testing/contract/handling.ts'
import { deliver, samplePayload } from '../../../src/testing/index.ts'
import { silent } from '../../conformance/subject.ts'
import { findRedis } from '../../redis/find-redis.ts'
import { RedisServer } from '../../redis/redis-server.ts'

// An event that was handed to a worker whose connection ended is handed out again after this.
const leaseMs = 2_000

const unavailable = expect.objectContaining({ code: 'unavailable' })

/** Accepts events at full speed until it is stopped, and says which were accepted. */
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

/** Handles events at once, and counts how often it did. */
function countRuns(inbox: Inbox): Map<string, number> {
  const runs = new Map<string, number>()
  inbox.start(async ({ key }) => {
    runs.set(key, (runs.get(key) ?? 0) + 1)
    return { status: 'done' }
  }, silent)
  return runs
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
const becomesEmpty = (inbox: Inbox) =>
  vi.waitUntil(() => isEmpty(inbox).catch(() => false), { timeout: 15_000, interval: 50 })

describe.skipIf(!findRedis())('bullmqInbox', () => {
  let server: RedisServer
  let inbox: Inbox
  beforeEach(async () => {
    server = await RedisServer.start()
  })
  afterEach(async () => {
    await inbox?.close({ timeoutMs: 500 })
    await server?.remove()
  })

  test('refuses at once, and closes soon, without Redis where events were handled and none accepted', async () => {
    inbox = bullmqInbox({ connection: server.url, leaseMs })
    const runs: string[] = []
    const lines: string[] = []
    const error = (_: object, line: string) => void lines.push(line)
    const handle: Handle = async ({ key }) => {
      runs.push(key)
      return { status: 'done' }
    }
    inbox.start(handle, { ...silent, error })
    const other = bullmqInbox({ connection: server.url, handles: false })
    countRuns(other)
    await other.accept(eventOf('one'))
    await other.close()
    await vi.waitUntil(() => runs.length === 1, { timeout: 5_000 })
    await server.stop()
    await vi.waitUntil(() => lines.includes('there is no connection to Redis; deliveries are refused'))

    const startedAt = performance.now()
    await expect(inbox.accept(eventOf('late'))).rejects.toEqual(unavailable)
    expect(performance.now() - startedAt).toBeLessThan(200)
    await inbox.close()
    expect(performance.now() - startedAt).toBeLessThan(4_000)
  }, 20_000)

  test('refuses at once while Redis is gone, and goes on by itself when it is back', async () => {
    inbox = bullmqInbox({ connection: server.url, leaseMs })
    const runs = countRuns(inbox)
    await inbox.accept(eventOf('before'))
    await becomesEmpty(inbox)
    await server.stop('SIGTERM')
    await expect(inbox.accept(eventOf('during'))).rejects.toEqual(unavailable)
    const startedAt = performance.now()
    for (let i = 0; i < 100; i++) await expect(inbox.accept(eventOf('during'))).rejects.toEqual(unavailable)
    await expect(inbox.stats()).rejects.toEqual(unavailable)
    await expect(inbox.deadLetters.list()).rejects.toEqual(unavailable)
    expect(performance.now() - startedAt).toBeLessThan(200)
    await server.restart()
    await vi.waitUntil(() => accepts(inbox, 'after'), { timeout: 5_000 })
    await becomesEmpty(inbox)
    expect(runs.get('after')).toBe(1)
    expect(await inbox.accept(eventOf('before'))).toBe('duplicate')
  }, 20_000)

  test('makes a receiver answer 503 with Retry-After while Redis is gone', async () => {
    inbox = bullmqInbox({ connection: server.url })
    const receiver = createReceiver({ verify: unverified(), inbox, logger: silent }).onAny(() => {})
    expect((await deliver(receiver, samplePayload('encoding.finished'))).status).toBe(200)
    await server.stop()
    const { status, headers } = await deliver(receiver, samplePayload('encoding.finished', { media_id: 'm2' }))
    expect(status).toBe(503)
    expect(headers).toHaveProperty('retry-after')
  })

  test('is made while Redis is still gone, and works once it is there', async () => {
    await server.stop()
    inbox = bullmqInbox({ connection: server.url, timeoutMs: 100 })
    const calls = await startInbox(inbox)
    await expect(inbox.accept(eventOf('one'))).rejects.toEqual(unavailable)
    await server.restart()
    await vi.waitUntil(() => accepts(inbox, 'one'), { timeout: 5_000 })
    expect((await calls.next()).event.key).toBe('one')
    calls.finishAll()
  }, 20_000)

  test('refuses within its time limit while Redis does not answer', async () => {
    inbox = bullmqInbox({ connection: server.url, timeoutMs: 200 })
    const runs = countRuns(inbox)
    await inbox.accept(eventOf('one'))
    server.pause()
    const startedAt = performance.now()
    await expect(inbox.accept(eventOf('two'))).rejects.toEqual(unavailable)
    expect(performance.now() - startedAt).toBeLessThan(1_000)
    server.resume()
    await inbox.accept(eventOf('two'))
    await becomesEmpty(inbox)
    expect(runs).toEqual(new Map([...['one', 'two'].map((key) => [key, 1] as const)]))
  }, 20_000)

  test('closes in time while Redis is gone', async () => {
    inbox = bullmqInbox({ connection: server.url })
    const calls = await startInbox(inbox)
    await inbox.accept(eventOf('one'))
    await calls.next()
    await server.stop()
    const startedAt = performance.now()
    const { unfinished } = await inbox.close({ timeoutMs: 100 })
    expect(unfinished.map(({ event }) => event.key)).toEqual(['one'])
    expect(performance.now() - startedAt).toBeLessThan(3_000)
    calls.finishAll()
  })

  // What everysec has not written yet is lost when Redis itself is killed; an orderly end writes it.
  test.each([
    ['is stopped', 'SIGTERM', 'everysec'],
    ['is killed', 'SIGKILL', 'always'],
  ] as const)(
    'handles what it accepted once, though Redis %s in the middle',
    async (_, signal, appendfsync) => {
      await server.remove()
      server = await RedisServer.start({ settings: { appendfsync } })
      inbox = bullmqInbox({ connection: server.url, leaseMs })
      const runs = countRuns(inbox)
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
      expect(accepted.length).toBeGreaterThan(100)
      expect(accepted.filter((key) => runs.get(key) !== 1)).toEqual([])
      expect([...runs.values()].filter((count) => count > 1)).toEqual([])
    },
    40_000,
  )

  test('handles what it accepted once, though its connections are cut', async () => {
    inbox = bullmqInbox({ connection: server.url, leaseMs })
    const runs = countRuns(inbox)
    const stop = acceptMany(inbox)
    const admin = new Redis(server.port)
    for (let i = 0; i < 10; i++) {
      await sleep(100)
      await admin.call('CLIENT', 'KILL', 'SKIPME', 'yes')
    }
    admin.disconnect()
    const { accepted } = await stop()
    await becomesEmpty(inbox)
    expect(accepted.length).toBeGreaterThan(100)
    expect(accepted.filter((key) => runs.get(key) !== 1)).toEqual([])
    expect([...runs.values()].filter((count) => count > 1)).toEqual([])
  }, 40_000)
})
