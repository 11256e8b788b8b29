import { Redis, type RedisOptions } from 'ioredis'

// BullMQ has to have these: it makes no second try at what it does when it starts, and blocks for as long as it likes.
const required = { maxRetriesPerRequest: null, enableOfflineQueue: true, lazyConnect: false } as const

/** A connection that is made again until it is closed. Commands wait meanwhile: `EventQueue.reach` does not. */
export function connect(connection: string | RedisOptions): Redis {
  const retryStrategy = (times: number) => Math.min(times * 50, 1_000)
  const client =
    typeof connection === 'string'
      ? new Redis(connection, { retryStrategy, ...required })
      : new Redis({ retryStrategy, ...connection, ...required })
  // Each failure to connect again is one; `reach` tells those who need to know.
  return client.on('error', () => {})
}
