import type { Redis } from 'ioredis'
import type { Logger } from '../../internal/logger.ts'

/** Warns where Redis is set to forget what was acknowledged. */
export async function warnOfWeakSettings(client: Redis, logger: Logger): Promise<void> {
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
    logger.warn({ err: error }, 'Redis did not tell its settings: see that appendonly is on and nothing is evicted')
  }
}
