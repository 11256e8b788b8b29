import { Redis } from 'ioredis'
import { describe, expect, onTestFinished, test } from 'vitest'
import { lruStore } from '../../src/idempotency/lru.ts'
import { type IoredisClient, type NodeRedisClient, redisStore } from '../../src/idempotency/redis.ts'
import type { StoreSteps } from '../../src/idempotency/store.ts'
import { clients } from '../support/redis/clients.ts'
import { findRedis } from '../support/redis/find-redis.ts'
import { RedisServer } from '../support/redis/redis-server.ts'
import { checkAgainstModel, type ModelSubject, ttlMs } from './model.ts'

/** @param max by default more than the keys of the model, and less than the store's own default, which takes longer */
function lruSubject(max = 100) {
  let now = 0
  const store = lruStore({ max, ttlMs, now: () => now })
  const advance = (ms: number) => {
    now += ms
  }
  return { store, advance }
}

/** Makes a client whose commands can be sent twice. */
function repeatable(client: IoredisClient | NodeRedisClient) {
  let isRepeated = false
  const send = async (run: () => Promise<unknown>) => {
    const answer = await run()
    return isRepeated ? run() : answer
  }
  const repeat = (on: boolean) => {
    isRepeated = on
  }
  if ('status' in client) {
    const repeated: IoredisClient = {
      status: 'ready',
      eval: (...command) => send(() => client.eval(...command)),
    }
    return { client: repeated, repeat }
  }
  const repeated: NodeRedisClient = {
    isReady: true,
    eval: (script, options) => send(() => client.eval(script, options)),
  }
  return { client: repeated, repeat }
}

describe('a store behaves like its model, in any sequence of steps', () => {
  test('lruStore', () => checkAgainstModel(() => lruSubject(), { runs: 1_000 }))

  test('lruStore that is full', () => checkAgainstModel(() => lruSubject(2), { runs: 1_000, max: 2 }))

  test.skipIf(!findRedis()).each(Object.entries(clients))('redisStore with %s', async (_, connect) => {
    const server = await RedisServer.start()
    onTestFinished(() => server.remove())
    const { client, end } = await connect(server)
    const admin = new Redis(server.port)
    onTestFinished(() => {
      end()
      admin.disconnect()
    })
    let subjects = 0
    const subject = (): ModelSubject => {
      const prefix = `subject-${++subjects}:`
      const { client: repeated, repeat } = repeatable(client)
      return {
        store: redisStore({ client: repeated, prefix, ttlMs, timeoutMs: 10_000 }),
        repeat,
        async advance(ms) {
          const names = ['a', 'b', 'c', 'd', 'e'].map((key) => prefix + key)
          await Promise.all(names.map(async (name) => admin.pexpire(name, (await admin.pttl(name)) - ms)))
        },
      }
    }
    await checkAgainstModel(subject, { runs: 100 })
  })
})

/** The fault, the steps that have it, and the expected message. */
const wrongStores: [string, (right: StoreSteps) => Partial<StoreSteps>, RegExp][] = [
  [
    'lets any owner release',
    ({ release }) => ({ release: (key) => [1, 2].some(() => release(key, 'one')) }),
    /release/,
  ],
  [
    'meets its own claim when that is repeated',
    ({ claim }) => ({
      async claim(...claimed) {
        await claim(...claimed)
        return claim(...claimed)
      },
    }),
    /in-progress, and not claimed/,
  ],
  [
    'gives leases that do not end',
    ({ claim }) => ({ claim: (key, owner) => claim(key, owner, 1e9) }),
    /and not claimed/,
  ],
  ['forgets what was finished', ({ release }) => ({ complete: release }), /and not done|false, and not true/],
  ['renews nothing', () => ({ renew: () => true }), /renew|claimed, and not in-progress/],
]

describe('the model finds the fault of a store that', () => {
  test.each(wrongStores)('%s', async (_, wrong, message) => {
    const subject = () => {
      const { store, advance } = lruSubject()
      return { store: { ...store, ...wrong(store) }, advance }
    }
    const error = await checkAgainstModel(subject, { runs: 1_000 }).then(String, (thrown: Error) => thrown)
    expect(error).toMatchObject({ cause: { message: expect.stringMatching(message) } })
    // The message is enough to read the run, and to play it again.
    expect(error).toMatchObject({ message: expect.stringMatching(/seed: -?\d+.*Counterexample/s) })
  })

  test.each([1, 3])('remembers %i finished keys instead of 2', async (max) => {
    await expect(checkAgainstModel(() => lruSubject(max), { runs: 1_000, max: 2 })).rejects.toThrow(/Counterexample/)
  })
})
