import { Cluster, Redis } from 'ioredis'
import { createClient, createCluster } from 'redis'
import type { IoredisClient, NodeRedisClient, RedisClient } from '../../../src/idempotency/redis.ts'

/** A server, or a proxy in front of it. */
export interface RedisAddress {
  readonly port: number
}

export interface ConnectedClient<Client extends RedisClient = IoredisClient | NodeRedisClient> {
  readonly client: Client
  end(): void
}

const ignoreErrors = () => {}

/** Connects each client that the store takes. */
export const clients = {
  async ioredis({ port }: RedisAddress): Promise<ConnectedClient> {
    const client = new Redis(port).on('error', ignoreErrors)
    return { client, end: () => client.disconnect() }
  },
  async 'node-redis'({ port }: RedisAddress): Promise<ConnectedClient> {
    const client = createClient({ url: `redis://127.0.0.1:${port}` }).on('error', ignoreErrors)
    await client.connect()
    return { client, end: () => client.destroy() }
  },
}

/** Connects the cluster client of each library. */
export const clusterClients = {
  async ioredis({ port }: RedisAddress): Promise<ConnectedClient> {
    const client = new Cluster([{ host: '127.0.0.1', port }]).on('error', ignoreErrors)
    return { client, end: () => client.disconnect() }
  },
  async 'node-redis'({ port }: RedisAddress): Promise<ConnectedClient> {
    const client = createCluster({ rootNodes: [{ url: `redis://127.0.0.1:${port}` }] }).on('error', ignoreErrors)
    await client.connect()
    return { client, end: () => client.destroy() }
  },
}
