import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { storeContract } from '../../src/testing/store-contract.ts'
import { clients, clusterClients } from '../support/redis/clients.ts'
import { findRedis } from '../support/redis/find-redis.ts'
import { RedisServer } from '../support/redis/redis-server.ts'
import { redisSubject } from '../support/redis/redis-subject.ts'

// A node of a cluster takes no writes for 2 s after a restart.

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
