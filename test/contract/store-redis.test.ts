import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest'
import { storeContract } from '../../src/testing/contract/store.ts'
import { clients, clusterClients } from '../redis/clients.ts'
import { findRedis } from '../redis/find-redis.ts'
import { RedisServer } from '../redis/redis-server.ts'
import { redisSubject } from '../redis/redis-subject.ts'

// A node of a cluster takes no writes for 2 s after a restart.
vi.setConfig({ testTimeout: 20_000, hookTimeout: 20_000 })

const kinds = [
  { of: 'one server', cluster: false, connects: clients },
  { of: 'a cluster', cluster: true, connects: clusterClients },
]

describe.skipIf(!findRedis()).each(kinds)('redisStore on $of', ({ cluster, connects }) => {
  let server: RedisServer
  beforeAll(async () => {
    server = await RedisServer.start({ cluster })
  })
  afterAll(() => server?.remove())

  describe.each(Object.entries(connects))('with %s', (_, connect) => {
    storeContract(() => redisSubject(server, connect), { test, expect })
  })
})
