import { existsSync, statSync } from 'node:fs'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Redis } from 'ioredis'
import { PostgresServer } from '../../support/postgres/postgres-server.ts'
import { RedisServer } from '../../support/redis/redis-server.ts'
import type { MeasuredInbox } from './sample.ts'

/** The storage of an inbox. */
export interface Place {
  /** The path of the file, or the URL of the server. */
  readonly address: string
  /** Measures the storage, in bytes. */
  size?(): Promise<number>
  /** Removes the storage. */
  remove(): Promise<void>
}

/** Makes the storage of each inbox. */
export const places: Readonly<Record<MeasuredInbox, () => Promise<Place>>> = {
  memory: async () => ({ address: '', remove: async () => {} }),

  async sqlite() {
    const folder = await mkdtemp(join(tmpdir(), 'media-webhooks-soak-'))
    const address = join(folder, 'inbox.db')
    const files = [address, `${address}-wal`]
    return {
      address,
      size: async () => files.reduce((sum, file) => sum + (existsSync(file) ? statSync(file).size : 0), 0),
      remove: () => rm(folder, { recursive: true }),
    }
  },

  async bullmq() {
    // Redis runs without its log of commands, whose buffers count as memory.
    const server = await RedisServer.start({ settings: { appendonly: 'no' } })
    const redis = new Redis(server.port)
    return {
      address: server.url,
      size: async () => Number(/used_memory:(\d+)/.exec(await redis.info('memory'))?.[1]),
      async remove() {
        redis.disconnect()
        await server.remove()
      },
    }
  },

  async postgres() {
    // Tables are vacuumed often, so that they are as large as they will ever be after some minutes.
    const server = await PostgresServer.start({ settings: { autovacuum_naptime: '5s' } })
    return {
      address: server.url,
      size: async () =>
        Number((await server.query('SELECT pg_database_size(current_database()) AS size'))[0]?.['size']),
      remove: () => server.remove(),
    }
  },
}
