import { setTimeout as sleep } from 'node:timers/promises'
import { Redis, type RedisOptions } from 'ioredis'
import { afterAll, beforeAll, describe, expect, onTestFinished, test, vi } from 'vitest'
import { type RedisClient, redisStore } from '../../src/idempotency/redis.ts'
import { createReceiver, memoryInbox, unverified, type WebhookError } from '../../src/index.ts'
import { deliver, samplePayload } from '../../src/testing/index.ts'
import { ownTime } from '../support/own-time.ts'
import { clients } from '../support/redis/clients.ts'
import { findRedis } from '../support/redis/find-redis.ts'
import { RedisServer } from '../support/redis/redis-server.ts'
import { TcpProxy } from '../support/tcp-proxy.ts'
import { untyped } from '../support/untyped.ts'
import { usedMemory } from '../support/used-memory.ts'

const lease = 5_000

const isReady = (client: RedisClient) =>
  'status' in client ? client.status === 'ready' : 'isReady' in client && client.isReady

describe.skipIf(!findRedis()).each(Object.entries(clients))('redisStore with %s', (_, connect) => {
  let server: RedisServer
  let client: RedisClient
  let end: () => void
  beforeAll(async () => {
    server = await RedisServer.start()
    ;({ client, end } = await connect(server))
  })
  afterAll(async () => {
    end?.()
    await server?.remove()
  })

  const storeOf = (prefix: string, ttlMs?: number) =>
    redisStore({ client, prefix, timeoutMs: 300, ...(ttlMs && { ttlMs }) })

  test('ends leases and finished keys by the clock of the server', async () => {
    const store = storeOf('clock:', 50)
    await store.claim('lease', 'a', 50)
    await store.claim('done', 'a', lease)
    await store.complete('done', 'a')
    await sleep(60)
    expect(await store.claim('lease', 'b', lease)).toBe('claimed')
    expect(await store.claim('done', 'b', lease)).toBe('claimed')
  })

  test('shares keys with stores of its prefix and with no others', async () => {
    await storeOf('here:').claim('key', 'a', lease)
    expect(await storeOf('here:').claim('key', 'b', lease)).toBe('in-progress')
    expect(await storeOf('there:').claim('key', 'b', lease)).toBe('claimed')
  })

  test('rejects within its time limit while Redis does not answer, and recovers when it does', async () => {
    const store = storeOf('paused:')
    await store.claim('key', 'a', lease)
    server.pause()
    const elapsed = ownTime()
    await expect(store.claim('key', 'b', lease)).rejects.toMatchObject({ code: 'unavailable' })
    expect(elapsed()).toBeLessThan(1_000)
    server.resume()
    expect(await store.claim('key', 'b', lease)).toBe('in-progress')
  })

  test('waits for the connection when it breaks for 50 ms', async () => {
    const proxy = await TcpProxy.start(server.port)
    const { client, end } = await connect(proxy)
    onTestFinished(() => {
      end()
      proxy.close()
    })
    const store = redisStore({ client, prefix: 'breaks:' })
    const claims: Promise<unknown>[] = []
    const timer = setInterval(() => {
      const claim = Promise.resolve(store.claim(crypto.randomUUID(), 'a', lease))
      claims.push(claim.catch((error) => error))
    }, 2)
    for (let i = 0; i < 3; i++) {
      await sleep(200)
      await proxy.breakFor(50)
    }
    await sleep(200)
    clearInterval(timer)
    expect(claims.length).toBeGreaterThan(10)
    expect(new Set(await Promise.all(claims))).toEqual(new Set(['claimed']))
  })

  test('claims a key for its caller although the answer to the claim is lost', async () => {
    const proxy = await TcpProxy.start(server.port)
    const { client, end } = await connect(proxy)
    onTestFinished(() => {
      end()
      proxy.close()
    })
    const store = redisStore({ client, prefix: 'lost:' })
    await store.claim('first', 'a', lease)
    proxy.mute()
    const claim = Promise.resolve(store.claim('key', 'a', lease)).catch((error) => error)
    await vi.waitUntil(async () => (await server.command('EXISTS', 'lost:key')) === '1')
    await proxy.breakFor(0)
    expect(await claim).toBe('claimed')
    expect(await store.claim('key', 'a', lease)).toBe('in-progress')
    expect(await store.complete('key', 'a')).toBe(true)
    expect(await store.claim('key', 'b', lease)).toBe('done')
  })

  test('gives a claim back that Redis carries out after its time limit', async () => {
    const store = storeOf('late:')
    await store.claim('first', 'a', lease)
    server.pause()
    await expect(store.claim('key', 'a', lease)).rejects.toMatchObject({ code: 'unavailable' })
    server.resume()
    await vi.waitUntil(async () => (await store.claim('key', 'b', lease)) === 'claimed')
  })

  test('uses no more memory for 12,000 claims than for 3,000 while Redis hangs', async () => {
    const store = redisStore({ client, prefix: 'hung:', timeoutMs: 50 })
    await store.claim('first', 'a', lease)
    server.pause()
    const claimed = async (key: string) => {
      try {
        return await store.claim(key, 'a', lease)
      } catch (error) {
        return (error as WebhookError).code
      }
    }
    const reject = async (count: number) => {
      for (let i = 0; i < count; i += 500) {
        const claims = Array.from({ length: 500 }, () => claimed(crypto.randomUUID()))
        expect(new Set(await Promise.all(claims))).toEqual(new Set(['unavailable']))
      }
    }
    await reject(3_000)
    const before = await usedMemory()
    await reject(9_000)
    const growth = (await usedMemory()) - before
    console.info(`redisStore: ${Math.round(growth / 1024)} kB more after 9,000 claims in a Redis that hangs`)
    server.resume()
    expect(growth).toBeLessThan(2_000_000)
    await vi.waitUntil(async () => (await claimed('last')) === 'claimed')
  })

  test('recovers after a failover that leaves its connections to the former master open', async () => {
    const former = await RedisServer.start()
    const proxy = await TcpProxy.start(former.port)
    const { client, end } = await connect(proxy)
    onTestFinished(async () => {
      end()
      proxy.close()
      await former.remove()
    })
    const store = redisStore({ client, prefix: 'failover:' })
    expect(await store.claim('before', 'a', lease)).toBe('claimed')
    proxy.target = server.port
    await former.command('REPLICAOF', '127.0.0.1', `${server.port}`)
    expect(await store.claim('after', 'a', lease)).toBe('claimed')
  })

  test('rejects within its time limit while Redis is down, and recovers by itself when it is back', async () => {
    const store = storeOf('gone:')
    await store.claim('key', 'a', lease * 100)
    await server.stop('SIGTERM')
    await expect(store.claim('key', 'b', lease)).rejects.toMatchObject({ code: 'unavailable' })
    const elapsed = ownTime()
    const claims = Array.from({ length: 100 }, (_, i) => Promise.resolve(store.claim(`key ${i}`, 'b', lease)))
    for (const claim of await Promise.allSettled(claims))
      expect(claim).toMatchObject({ status: 'rejected', reason: { code: 'unavailable' } })
    expect(elapsed()).toBeLessThan(1_900)
    await server.restart()
    await vi.waitUntil(() => isReady(client))
    expect(await store.claim('key', 'b', lease)).toBe('in-progress')
    // The claims that failed were not sent later.
    expect(await store.claim('key 99', 'c', lease)).toBe('claimed')
  })
})

describe.skipIf(!findRedis())('redisStore', () => {
  /** Starts a server for one test, and a client of it. */
  async function started(options: RedisOptions = {}) {
    const server = await RedisServer.start()
    const client = new Redis(server.port, options)
    onTestFinished(async () => {
      client.disconnect()
      await server.remove()
    })
    return { server, client }
  }

  test('waits for a client that is still connecting', async () => {
    const { client } = await started()
    expect(client.status).toBe('connecting')
    expect(await redisStore({ client }).claim('key', 'a', lease)).toBe('claimed')
  })

  test('takes a client that connects when it is first used', async () => {
    const { client } = await started({ lazyConnect: true })
    expect(await redisStore({ client }).claim('key', 'a', lease)).toBe('claimed')
  })

  test.each(['accepted', 'handled'] as const)(
    "keeps two receivers from handling one event where they acknowledge it once it is '%s'",
    async (ack) => {
      const { server, client } = await started()
      const machines = [client, new Redis(server.port)]
      let runs = 0
      const receivers = machines.map((client) =>
        createReceiver({ verify: unverified(), inbox: memoryInbox({ store: redisStore({ client }) }), ack }).onAny(
          () => void runs++,
        ),
      )
      const payload = samplePayload('encoding.finished')
      for (const receiver of receivers) {
        const { status, handled } = await deliver(receiver, payload)
        expect(status).toBe(200)
        await handled
      }
      expect(runs).toBe(1)
      for (const receiver of receivers) await receiver.close()
      machines[1]?.disconnect()
    },
  )

  test('keeps a finished key in less than 400 bytes', async () => {
    const { client } = await started()
    const store = redisStore({ client, timeoutMs: 20_000 })
    const used = async () => Number(/used_memory:(\d+)/.exec(await client.info('memory'))?.[1])
    // Keys are this long when the sender gives every field.
    const uuid = '0d4c8f5e-6a3e-4f43-9f6e-'
    const keyOf = (i: number) =>
      `["encoding.finished","${uuid}${i + 1e11}","${uuid}${i + 1e11}","2026-03-01T12:00:00.123456789Z","360p,720p,1080p","done"]`
    const count = 5_000
    const before = await used()
    const owner = crypto.randomUUID()
    await Promise.all(
      Array.from({ length: count }, async (_, i) => {
        await store.claim(keyOf(i), owner, lease)
        await store.complete(keyOf(i), owner)
      }),
    )
    const bytes = ((await used()) - before) / count
    console.info(`redisStore: ${Math.round(bytes)} bytes per finished key of ${keyOf(0).length} characters`)
    expect(bytes).toBeLessThan(400)
  })
})

test('redisStore throws for an invalid option', () => {
  const client = { status: 'ready', eval: async () => 1, once() {} }
  expect(() => redisStore(untyped(undefined))).toThrow(expect.objectContaining({ code: 'invalid_option' }))
  expect(() => redisStore({ client: untyped({}) })).toThrow(expect.objectContaining({ code: 'invalid_option' }))
  expect(() => redisStore({ client: untyped(undefined) })).toThrow(expect.objectContaining({ code: 'invalid_option' }))
  expect(() => redisStore({ client, ttlMs: 0 })).toThrow(expect.objectContaining({ code: 'invalid_option' }))
  expect(() => redisStore({ client, timeoutMs: 1.5 })).toThrow(expect.objectContaining({ code: 'invalid_option' }))
  expect(() => redisStore({ client, prefix: untyped(1) })).toThrow(expect.objectContaining({ code: 'invalid_option' }))
})
