import { Redis } from 'ioredis'
import { type RedisClient, redisStore } from '../../../src/idempotency/redis.ts'
import type { StoreSubject } from '../../../src/testing/store-contract.ts'
import type { ConnectedClient } from './clients.ts'
import type { RedisServer } from './redis-server.ts'

let subjects = 0

/** Makes a store with its own key prefix. `advance` shortens the time to live of its keys. */
export async function redisSubject(
  server: RedisServer,
  connect: (server: RedisServer) => Promise<ConnectedClient<RedisClient>>,
): Promise<StoreSubject> {
  const { client, end } = await connect(server)
  const admin = new Redis(server.port)
  const prefix = `subject-${++subjects}:`
  let broken = false
  // An answer comes, however busy the machine is, until the connection is broken.
  let store = redisStore({ client, prefix, timeoutMs: 60_000 })
  return {
    store: {
      claim: (...parameters) => store.claim(...parameters),
      renew: (...parameters) => store.renew(...parameters),
      complete: (...parameters) => store.complete(...parameters),
      release: (...parameters) => store.release(...parameters),
    },
    async advance(ms) {
      for (const key of await admin.keys(`${prefix}*`)) await admin.pexpire(key, (await admin.pttl(key)) - ms)
    },
    async breakConnection() {
      broken = true
      store = redisStore({ client, prefix, timeoutMs: 100 })
      admin.disconnect()
      await server.stop()
    },
    async close() {
      end()
      admin.disconnect()
      if (broken) await server.restart()
    },
  }
}
