import type { Redis } from 'ioredis'
import type { Logger } from '../../internal/logger.ts'
import { withoutCommand } from '../../storage/reach-redis.ts'

/** The time between two checks of the settings, in ms. They can be changed while Redis runs. */
const checkMs = 60_000

/**
 * Warns if settings of Redis can lose events, once for each change. It checks every minute, and after each connection,
 * because a failover may have led to another server.
 */
export function watchSettings(client: Redis, logger: Logger): void {
  const settings = new Settings(client, logger)
  client.on('ready', () => void settings.check())
  const timer = setInterval(() => {
    if (client.status === 'ready') void settings.check()
  }, checkMs)
  timer.unref()
  client.once('end', () => clearInterval(timer))
}

class Settings {
  readonly #client: Redis
  readonly #logger: Logger
  #hasAppendLog = true
  #policy: string | undefined = 'noeviction'
  #isReadable = true

  constructor(client: Redis, logger: Logger) {
    this.#client = client
    this.#logger = logger
  }

  async check(): Promise<void> {
    try {
      const info = `${await this.#client.info('persistence')}${await this.#client.info('memory')}`
      this.#isReadable = true
      this.#checkAppendLog(!/^aof_enabled:0/m.test(info))
      this.#checkPolicy(/^maxmemory_policy:(\S+)/m.exec(info)?.[1])
    } catch (error) {
      this.#unreadable(error)
    }
  }

  #checkAppendLog(hasAppendLog: boolean): void {
    if (this.#hasAppendLog && !hasAppendLog)
      this.#logger.warn(
        {},
        'Redis has appendonly off: acknowledged events are lost when it ends. Set appendonly to yes',
      )
    this.#hasAppendLog = hasAppendLog
  }

  #checkPolicy(policy: string | undefined): void {
    if (policy !== undefined && policy !== 'noeviction' && policy !== this.#policy)
      this.#logger.warn(
        { policy },
        'Redis evicts keys when it is full, acknowledged events too. Set maxmemory-policy to noeviction',
      )
    this.#policy = policy
  }

  #unreadable(error: unknown): void {
    // An outage is logged elsewhere, and closing is not an outage.
    if (!this.#isReadable || this.#client.status !== 'ready') return
    this.#isReadable = false
    this.#logger.warn(
      { err: withoutCommand(error) },
      'the settings of Redis could not be read. Make sure that appendonly is on and maxmemory-policy is noeviction',
    )
  }
}
