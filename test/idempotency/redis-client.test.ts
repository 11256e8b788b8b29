import { describe, expect, test } from 'vitest'
import { redisStore } from '../../src/idempotency/redis.ts'
import { asOnWorkers } from '../support/as-on-workers.ts'
import { untyped } from '../support/untyped.ts'

const script = async () => 'claimed'
const ioredis = { status: 'ready', eval: script }
const nodeRedis = { isReady: true, eval: script }
const http = { eval: script }

describe('on Workers', () => {
  asOnWorkers()
  const onWorkers = async () => (await import('../../src/idempotency/redis.ts')).redisStore

  test.each([
    ['ioredis', ioredis],
    ['node-redis', nodeRedis],
  ])('a client of %s is an immediate error, which names the one to use', async (_, client) => {
    const redisStore = await onWorkers()
    const message =
      "redisStore: on Workers, client can't be ioredis or node-redis, whose connections end with the request that opened " +
      'them: use @upstash/redis'
    expect(() => redisStore({ client })).toThrow(expect.objectContaining({ code: 'invalid_option', message }))
  })

  test('a client over HTTP works', async () => {
    const redisStore = await onWorkers()
    expect(await redisStore({ client: http }).claim('key', 'owner', 1_000)).toBe('claimed')
  })
})

test('a client that has no eval is an error, which names the clients', () => {
  const message = 'redisStore: client must be an ioredis, node-redis or @upstash/redis client'
  const error = expect.objectContaining({ code: 'invalid_option', message })
  for (const client of [undefined, null, {}, 'redis://127.0.0.1'])
    expect(() => redisStore({ client: untyped(client) })).toThrow(error)
})

test.each([
  [1, true],
  ['1', true],
  [0, false],
  ['0', false],
  [null, false],
])('reads the answer %j of a client over HTTP as %s', async (answer, expected) => {
  const store = redisStore({ client: { eval: async () => answer } })
  expect(await store.complete('key', 'owner')).toBe(expected)
})

test('releases what a client over HTTP claims after its time limit', async () => {
  const scripts: string[][] = []
  let answer = (_: string) => {}
  const client = {
    eval: (_script: string, _keys: string[], parameters: string[]) => {
      scripts.push(parameters)
      return new Promise<string>((resolve) => {
        answer = resolve
      })
    },
  }
  const store = redisStore({ client, timeoutMs: 20 })
  const claim = expect(store.claim('key', 'owner', 1_000)).rejects.toMatchObject({ code: 'unavailable' })
  const late = answer
  await claim
  late('claimed')
  await expect.poll(() => scripts.length).toBe(2)
  expect(scripts[1]).toEqual(['owner'])
})
