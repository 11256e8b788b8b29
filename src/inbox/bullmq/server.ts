import type { Redis } from 'ioredis'
import type { Logger } from '../../internal/logger.ts'
import { withoutCommand } from '../../storage/reach-redis.ts'
import { everyMinute } from './connection.ts'
import type { EventQueue } from './queue.ts'

/** Reads a field of what Redis says about itself. */
const fieldOf = (info: string, name: string): string | undefined => new RegExp(`^${name}:(\\S+)`, 'm').exec(info)?.[1]

/** A setting of Redis that can lose events, or that keeps events from being accepted. */
interface Problem {
  readonly level: 'warn' | 'error'
  readonly message: string
  readonly details?: object
}

/**
 * Warns if settings of Redis can lose events, once for each change. They can be changed while Redis runs, and a failover may
 * lead to another server.
 */
export function watchSettings(client: Redis, queue: string, logger: Logger): void {
  const isInOneSlot = /\{[^}]+\}/.test(queue)
  let known = new Set<string>()
  let isReadable = true
  everyMinute(client, async () => {
    try {
      const problems = problemsOf(String(await client.call('INFO')), isInOneSlot)
      const fresh = problems.filter((problem) => !known.has(JSON.stringify(problem)))
      for (const { level, message, details = {} } of fresh) logger[level](details, message)
      known = new Set(problems.map((problem) => JSON.stringify(problem)))
      isReadable = true
    } catch (error) {
      // An outage is logged elsewhere, and closing is not an outage.
      if (!isReadable || client.status !== 'ready') return
      isReadable = false
      logger.warn(
        { err: withoutCommand(error) },
        'the settings of Redis could not be read (+info permits it). Make sure that appendonly is on and maxmemory-policy is noeviction',
      )
    }
  })
}

function problemsOf(info: string, isInOneSlot: boolean): readonly Problem[] {
  const problems: Problem[] = []
  const policy = fieldOf(info, 'maxmemory_policy')
  if (fieldOf(info, 'aof_enabled') === '0')
    problems.push({
      level: 'warn',
      message: 'Redis has appendonly off: acknowledged events are lost when it ends. Set appendonly to yes',
    })
  if (fieldOf(info, 'cluster_enabled') === '1' && !isInOneSlot)
    problems.push({
      level: 'error',
      message:
        "Redis is a cluster, which refuses events: the queue's name needs a hash tag, such as '{media-webhooks}'",
    })
  if (policy !== undefined && policy !== 'noeviction')
    problems.push({
      level: 'warn',
      message: 'Redis evicts keys when it is full, even acknowledged events. Set maxmemory-policy to noeviction',
      details: { policy },
    })
  return problems
}

/**
 * The part of Redis' memory that may be used when an event is accepted. Handling the event needs more until it is
 * removed.
 */
const maxUsed = 0.9

/** A reading of Redis' memory is valid for this time, in ms, and for this number of events. */
const validMs = 1_000
const validEvents = 100

/** Maximum memory of the deliveries that wait for Redis, in bytes. Most wait during an outage, each up to `timeoutMs`. */
const maxWaiting = 64 * 1024 * 1024

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
  #waiting = 0

  constructor(queue: EventQueue, logger: Logger) {
    this.#queue = queue
    this.#logger = logger
  }

  /** Stores a delivery of some size in bytes. Resolves with `undefined` if there is no room for it. */
  async store<T>(size: number, step: () => Promise<T>): Promise<T | undefined> {
    if (this.#waiting >= maxWaiting) return undefined
    this.#waiting += size
    try {
      return (await this.#hasRoom()) ? await step() : undefined
    } finally {
      this.#waiting -= size
    }
  }

  async #hasRoom(): Promise<boolean> {
    const isStale = performance.now() - this.#readAt > validMs || (!this.#isFull && this.#eventsLeft-- <= 0)
    if (isStale) this.#reading ??= this.#read()
    // If there was room, nothing waits. A rejected delivery may never come again.
    if (this.#isFull) await this.#reading
    return !this.#isFull
  }

  async #read(): Promise<void> {
    try {
      this.#update(await this.#queue.reach(() => this.#queue.client.info('memory')))
    } catch {
      // Without an answer, the last reading stays valid.
    }
    this.#readAt = performance.now()
    this.#eventsLeft = validEvents
    this.#reading = undefined
  }

  #update(info: string): void {
    const numberOf = (name: string) => Number(fieldOf(info, name) ?? 0)
    const maxMemory = numberOf('maxmemory')
    const usedMemory = numberOf('used_memory') - numberOf('mem_not_counted_for_evict')
    const isFull = maxMemory > 0 && usedMemory > maxUsed * maxMemory
    if (isFull === this.#isFull) return
    this.#isFull = isFull
    const details = { usedMemory, maxMemory }
    if (!isFull) return this.#logger.info(details, 'Redis has room for events again')
    const fix = 'Raise maxmemory, or discard dead letters'
    this.#logger.error(details, `Redis is more than 90 % full; deliveries are answered 503 until it has room. ${fix}`)
  }
}
