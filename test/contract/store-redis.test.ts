import { Cluster, Redis } from 'ioredis-oldest'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { storeContract } from '../../src/testing/store-contract.ts'
import { type ConnectedClient, clients, clusterClients, type RedisAddress } from '../support/redis/clients.ts'
import { findRedis } from '../support/redis/find-redis.ts'
import { RedisServer } from '../support/redis/redis-server.ts'
import { redisSubject } from '../support/redis/redis-subject.ts'

// A node of a cluster takes no writes for 2 s after a restart.

/** The oldest ioredis that is supported. */
const oldest = {
  async client({ port }: RedisAddress): Promise<ConnectedClient> {
    const client = new Redis(port).on('error', () => {})
    return { client, end: () => client.disconnect() }
  },
  async clusterClient({ port }: RedisAddress): Promise<ConnectedClient> {
    const client = new Cluster([{ host: '127.0.0.1', port }]).on('error', () => {})
    return { client, end: () => client.disconnect() }
  },
}

const kinds = [
  { of: 'one server', cluster: false, connects: { ...clients, 'the oldest ioredis': oldest.client } },
  { of: 'a cluster', cluster: true, connects: { ...clusterClients, 'the oldest ioredis': oldest.clusterClient } },
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
