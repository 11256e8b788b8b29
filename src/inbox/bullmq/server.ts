import type { Redis } from 'ioredis'
import type { Logger } from '../../internal/logger.ts'
import { withoutCommand } from '../../storage/reach-redis.ts'
import type { EventQueue } from './queue.ts'

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

/**
 * The part of Redis' memory that may be used when an event is accepted. Handling the event needs more until it is
 * removed.
 */
const mostUsed = 0.9

/** A reading of Redis' memory is valid for this time, in ms, and for this number of events. */
const validMs = 1_000
const validEvents = 100

/**
 * Knows whether Redis has room for more events, up to a second late. Without free memory, none of the stored events
 * could be handled.
 */
export class Room {
  readonly #queue: EventQueue
  readonly #logger: Logger
  #isFull = false
  #readAt = Number.NEGATIVE_INFINITY
  #eventsLeft = 0
  #reading: Promise<void> | undefined

  constructor(queue: EventQueue, logger: Logger) {
    this.#queue = queue
    this.#logger = logger
  }

  /** Returns `true` if one more event may be stored. */
  async isLeft(): Promise<boolean> {
    const isOld = performance.now() - this.#readAt > validMs || (!this.#isFull && this.#eventsLeft-- <= 0)
    if (isOld) this.#reading ??= this.#read()
    // If there was room, nothing waits. A rejected delivery may never come again.
    if (this.#isFull) await this.#reading
    return !this.#isFull
  }

  async #read(): Promise<void> {
    try {
      this.#found(await this.#queue.reach(() => this.#queue.client.info('memory')))
    } catch {
      // Without an answer, the last reading stays valid.
    }
    this.#readAt = performance.now()
    this.#eventsLeft = validEvents
    this.#reading = undefined
  }

  #found(info: string): void {
    const numberOf = (name: string) => Number(new RegExp(`^${name}:(\\d+)`, 'm').exec(info)?.[1] ?? 0)
    const maxMemory = numberOf('maxmemory')
    const usedMemory = numberOf('used_memory') - numberOf('mem_not_counted_for_evict')
    const isFull = maxMemory > 0 && usedMemory > mostUsed * maxMemory
    if (isFull === this.#isFull) return
    this.#isFull = isFull
    const details = { usedMemory, maxMemory }
    if (!isFull) return this.#logger.info(details, 'Redis has room for events again')
    const fix = 'Raise maxmemory, or discard dead letters'
    this.#logger.error(details, `Redis is more than 90 % full; deliveries are answered 503 until it has room. ${fix}`)
  }
}
