import { Redis, type RedisOptions } from 'ioredis'
import type { Logger } from '../../internal/logger.ts'

// BullMQ needs these: it does not repeat what it does at start-up, and it blocks for as long as it likes.
const required = { maxRetriesPerRequest: null, enableOfflineQueue: true, lazyConnect: false } as const

/** Connects to Redis, again and again until it is closed. Commands wait meanwhile; `EventQueue.reach` does not. */
export function connect(connection: string | RedisOptions): Redis {
  const retryStrategy = (times: number) => Math.min(times * 50, 1_000)
  const client =
    typeof connection === 'string'
      ? new Redis(connection, { retryStrategy, ...required })
      : new Redis({ retryStrategy, ...connection, ...required })
  // Every failed attempt to reconnect emits one; `reach` reports the outage to its callers.
  return client.on('error', () => {})
}

/** Logs when the connection is lost and restored, and settings of Redis that can lose events. */
export function watch(client: Redis, logger: Logger, isClosing: () => boolean): void {
  void warnOfWeakSettings(client, logger)
  let isLost = false
  client.on('ready', () => {
    if (isLost) logger.info({}, 'the connection to Redis is restored')
    isLost = false
  })
  // Emitted for every failed attempt to reconnect, too.
  client.on('close', () => {
    if (!isLost && !isClosing()) logger.error({}, 'there is no connection to Redis; deliveries are answered 503')
    isLost = true
  })
}

async function warnOfWeakSettings(client: Redis, logger: Logger): Promise<void> {
  try {
    const info = `${await client.info('persistence')}${await client.info('memory')}`
    if (/^aof_enabled:0/m.test(info))
      logger.warn({}, 'Redis has appendonly off: acknowledged events are lost when it ends. Set appendonly to yes')
    const policy = /^maxmemory_policy:(\S+)/m.exec(info)?.[1]
    if (policy !== undefined && policy !== 'noeviction')
      logger.warn(
        { policy },
        'Redis evicts keys when it is full, acknowledged events too. Set maxmemory-policy to noeviction',
      )
  } catch (error) {
    logger.warn(
      { err: error },
      'the settings of Redis could not be read. Make sure that appendonly is on and maxmemory-policy is noeviction',
    )
  }
}
