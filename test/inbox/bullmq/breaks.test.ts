import { setTimeout as sleep } from 'node:timers/promises'
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest'
import { bullmqInbox } from '../../../src/inbox/bullmq.ts'
import type { Inbox } from '../../../src/inbox/inbox.ts'
import type { Logger } from '../../../src/index.ts'
import { eventOf } from '../../support/inbox.ts'
import { openWith } from '../../support/open-with.ts'
import { findRedis } from '../../support/redis/find-redis.ts'
import { RedisServer } from '../../support/redis/redis-server.ts'
import { TcpProxy } from '../../support/tcp-proxy.ts'
import { usedMemory } from '../../support/used-memory.ts'

const unavailable = expect.objectContaining({ code: 'unavailable' })

describe.skipIf(!findRedis())('bullmqInbox', () => {
  let server: RedisServer
  let proxy: TcpProxy
  let inbox: Inbox
  const runs = new Map<string, number>()
  beforeEach(async () => {
    runs.clear()
    server = await RedisServer.start()
    proxy = await TcpProxy.start(server.port)
  })
  afterEach(async () => {
    server?.resume()
    await inbox?.close({ timeoutMs: 100 })
    proxy?.close()
    await server?.remove()
  })

  const open = (timeoutMs?: number, logger?: Logger) => {
    inbox = openWith(
      bullmqInbox({ connection: `redis://127.0.0.1:${proxy.port}`, leaseMs: 1_000, ...(timeoutMs && { timeoutMs }) }),
      async ({ event: { key } }) => {
        runs.set(key, (runs.get(key) ?? 0) + 1)
        return { status: 'done' }
      },
      logger,
    )
    return inbox
  }

  const accepts = async (key: string): Promise<boolean> => {
    try {
      await inbox.accept(eventOf(key))
      return true
    } catch (error) {
      expect(error).toEqual(unavailable)
      return false
    }
  }

  /** Accepts an event every 2 ms while `run` runs, and returns how many were accepted and how many were not. */
  const acceptDuring = async (run: () => Promise<void>) => {
    const answers: Promise<boolean>[] = []
    const timer = setInterval(() => {
      answers.push(accepts(crypto.randomUUID()))
    }, 2)
    await run()
    clearInterval(timer)
    const accepted = (await Promise.all(answers)).filter(Boolean).length
    return { accepted, rejected: answers.length - accepted }
  }

  test('accepts every event although the connection to Redis breaks for 50 ms', async () => {
    open()
    await inbox.accept(eventOf('first'))
    const { accepted, rejected } = await acceptDuring(async () => {
      for (let i = 0; i < 3; i++) {
        await sleep(200)
        await proxy.breakFor(50)
      }
      await sleep(200)
    })
    expect(accepted).toBeGreaterThan(10)
    expect(rejected).toBe(0)
    await vi.waitUntil(() => runs.size === accepted + 1)
    expect([...runs.values()].filter((count) => count > 1)).toEqual([])
  })

  test('uses no more memory for 6,000 deliveries than for 1,500 while Redis hangs', async () => {
    open(50)
    await vi.waitUntil(() => accepts('first'))
    server.pause()
    const reject = async (count: number) => {
      for (let i = 0; i < count; i += 250) {
        const answers = await Promise.all(Array.from({ length: 250 }, () => accepts(crypto.randomUUID())))
        expect(answers).not.toContain(true)
      }
    }
    await reject(1_500)
    const before = await usedMemory()
    await reject(4_500)
    const growth = (await usedMemory()) - before
    console.info(`bullmqInbox: ${Math.round(growth / 1024)} kB more after 4,500 deliveries to a Redis that hangs`)
    expect(growth).toBeLessThan(5_000_000)
    server.resume()
    await vi.waitUntil(() => accepts('last'))
    await vi.waitUntil(() => runs.has('last'))
    // The deliveries that were on their way when it hung.
    expect(runs.size).toBeLessThan(600)
  })

  test('recovers after a failover that leaves its connections to the former master open', async () => {
    const replica = await RedisServer.start()
    try {
      await server.command('CONFIG', 'SET', 'repl-diskless-sync-delay', '0')
      await replica.command('REPLICAOF', '127.0.0.1', `${server.port}`)
      open()
      await inbox.accept(eventOf('before'))
      await vi.waitUntil(() => runs.size === 1)
      const info = () => replica.command('INFO', 'replication')
      await vi.waitUntil(async () => (await info()).includes('master_link_status:up'))
      proxy.target = replica.port
      await replica.command('REPLICAOF', 'NO', 'ONE')
      await server.command('REPLICAOF', '127.0.0.1', `${replica.port}`)
      const { accepted, rejected } = await acceptDuring(() => sleep(1_000))
      expect(accepted).toBeGreaterThan(10)
      expect(rejected).toBe(0)
      await vi.waitUntil(() => runs.size === accepted + 1)
    } finally {
      await replica.remove()
    }
  })

  test('waits for a master that is read-only for a moment', async () => {
    open()
    await inbox.accept(eventOf('before'))
    const { rejected } = await acceptDuring(async () => {
      await server.command('REPLICAOF', '127.0.0.1', '1')
      await sleep(300)
      await server.command('REPLICAOF', 'NO', 'ONE')
      await sleep(300)
    })
    expect(rejected).toBe(0)
  })
})
