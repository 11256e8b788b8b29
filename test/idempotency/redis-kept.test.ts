import { Redis } from 'ioredis'
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { redisStore } from '../../src/idempotency/redis.ts'
import { findRedis } from '../support/redis/find-redis.ts'
import { RedisServer } from '../support/redis/redis-server.ts'

const [second, hour, day] = [1_000, 3_600_000, 86_400_000]
const lease = 10 * second

// A test may be slow, so a time that is left may be shorter than the time that was set.
const slack = 9 * second

describe.skipIf(!findRedis())('The time for which redisStore keeps', () => {
  let server: RedisServer
  let client: Redis
  beforeAll(async () => {
    server = await RedisServer.start()
    client = new Redis(server.port)
  })
  beforeEach(() => client.flushall())
  afterAll(async () => {
    client?.disconnect()
    await server?.remove()
  })

  const expectLeft = async (key: string, ms: number) => {
    const left = await client.pttl(key)
    expect(left).toBeGreaterThan(ms - slack)
    expect(left).toBeLessThanOrEqual(ms)
  }

  test('a finished key is 24 hours by default', async () => {
    const store = redisStore({ client })
    await store.claim('key', 'a', lease)
    await store.complete('key', 'a')
    await expectLeft('media-webhooks:key', day)
  })

  test('a finished key is ttlMs', async () => {
    const store = redisStore({ client, prefix: '', ttlMs: hour })
    await store.claim('key', 'a', lease)
    await store.complete('key', 'a')
    await expectLeft('key', hour)
  })

  test('a finished key is ttlMs even if its lease had run out', async () => {
    const store = redisStore({ client, prefix: '', ttlMs: hour })
    expect(await store.complete('key', 'a')).toBe(true)
    await expectLeft('key', hour)
  })

  test('a finished key does not change with what follows', async () => {
    const store = redisStore({ client, prefix: '', ttlMs: hour })
    await store.claim('key', 'a', lease)
    await store.complete('key', 'a')
    await client.pexpire('key', hour / 2)
    expect(await store.claim('key', 'b', lease)).toBe('done')
    expect(await store.complete('key', 'b')).toBe(false)
    expect(await store.renew('key', 'a', lease)).toBe(false)
    expect(await store.release('key', 'a')).toBe(false)
    await expectLeft('key', hour / 2)
  })

  test('a key that its owner finishes again, after a replay, begins again', async () => {
    const store = redisStore({ client, prefix: '', ttlMs: hour })
    await store.claim('key', 'a', lease)
    await store.complete('key', 'a')
    await client.pexpire('key', hour / 2)
    expect(await store.complete('key', 'a')).toBe(true)
    await expectLeft('key', hour)
  })

  test('a claim is its lease, from its last renewal', async () => {
    const store = redisStore({ client, prefix: '', ttlMs: hour })
    await store.claim('key', 'a', lease)
    await expectLeft('key', lease)
    await store.claim('key', 'b', 5 * lease)
    await expectLeft('key', lease)
    await store.renew('key', 'a', 3 * lease)
    await expectLeft('key', 3 * lease)
  })
})
