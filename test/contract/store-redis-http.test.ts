import { Redis } from '@upstash/redis'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { storeContract } from '../../src/testing/store-contract.ts'
import { findRedis } from '../support/redis/find-redis.ts'
import { startHttpBridge } from '../support/redis/http-bridge.ts'
import { RedisServer } from '../support/redis/redis-server.ts'
import { redisSubject } from '../support/redis/redis-subject.ts'

/** A client of the least that HTTP takes. */
const plainClient = ({ url, token }: { url: string; token: string }) => ({
  async eval(script: string, keys: string[], parameters: string[]) {
    const command = ['EVAL', script, keys.length, ...keys, ...parameters]
    const response = await fetch(url, {
      method: 'POST',
      headers: { authorization: `Bearer ${token}` },
      body: JSON.stringify(command),
    })
    const { result, error } = (await response.json()) as { result?: unknown; error?: string }
    if (error !== undefined) throw new Error(error)
    return result
  },
})

const kinds = {
  '@upstash/redis': (bridge: { url: string; token: string }) => new Redis(bridge),
  '@upstash/redis, which leaves JSON alone': (bridge: { url: string; token: string }) =>
    new Redis({ ...bridge, automaticDeserialization: false, enableAutoPipelining: false }),
  'a plain client': plainClient,
}

describe.skipIf(!findRedis())('redisStore over HTTP', () => {
  let server: RedisServer
  beforeAll(async () => {
    server = await RedisServer.start()
  })
  afterAll(() => server?.remove())

  describe.each(Object.entries(kinds))('with %s', (_, clientOf) => {
    const connect = async () => {
      const bridge = await startHttpBridge(server)
      return { client: clientOf(bridge), end: () => void bridge.stop() }
    }
    storeContract(() => redisSubject(server, connect), { test, expect })
  })
})
