import type { Redis } from 'ioredis'
import type { Logger } from '../../internal/logger.ts'
import { withoutCommand } from '../../storage/reach-redis.ts'
import type { EventQueue } from './queue.ts'

/** Reads a field of what Redis says about itself. */
const fieldOf = (info: string, name: string): string | undefined => new RegExp(`^${name}:(\\S+)`, 'm').exec(info)?.[1]

/** The time between two checks of the settings, in ms. They can be changed while Redis runs. */
const checkMs = 60_000

/**
 * Warns if settings of Redis can lose events, once for each change. It checks every minute, and after each connection,
 * because a failover may have led to another server.
 */
export function watchSettings(client: Redis, logger: Logger): void {
  let before: SettingsFound = { hasAppendLog: true, policy: 'noeviction' }
  const check = async () => {
    if (client.status !== 'ready') return
    try {
      const info = `${await client.info('persistence')}${await client.info('memory')}`
      const found = { hasAppendLog: fieldOf(info, 'aof_enabled') !== '0', policy: fieldOf(info, 'maxmemory_policy') }
      warnOf(found, before, logger)
      before = found
    } catch (error) {
      // An outage is logged elsewhere, and closing is not an outage.
      if (before.isUnreadable || client.status !== 'ready') return
      before = { ...before, isUnreadable: true }
      logger.warn(
        { err: withoutCommand(error) },
        'the settings of Redis could not be read. Make sure that appendonly is on and maxmemory-policy is noeviction',
      )
    }
  }
  client.on('ready', check)
  const timer = setInterval(check, checkMs)
  timer.unref()
  client.once('end', () => clearInterval(timer))
}

/** The findings of a check of the settings. */
interface SettingsFound {
  readonly hasAppendLog: boolean
  readonly policy: string | undefined
  /** `true` if the last check failed. */
  readonly isUnreadable?: boolean
}

function warnOf({ hasAppendLog, policy }: SettingsFound, before: SettingsFound, logger: Logger): void {
  if (before.hasAppendLog && !hasAppendLog)
    logger.warn({}, 'Redis has appendonly off: acknowledged events are lost when it ends. Set appendonly to yes')
  if (policy !== undefined && policy !== 'noeviction' && policy !== before.policy)
    logger.warn(
      { policy },
      'Redis evicts keys when it is full, even acknowledged events. Set maxmemory-policy to noeviction',
    )
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
    const numberOf = (name: string) => Number(fieldOf(info, name) ?? 0)
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
