import type { Redis } from 'ioredis'
import type { Logger } from '../../internal/logger.ts'
import { withoutCommand } from '../../internal/storage/reach-redis.ts'
import { everyMinute } from './connection.ts'
import type { EventQueue } from './queue.ts'

const readField = (info: string, name: string): string | undefined => new RegExp(`^${name}:(\\S+)`, 'm').exec(info)?.[1]

/** A Redis setting that can lose or block events. */
interface Problem {
  readonly level: 'warn' | 'error'
  readonly message: string
  readonly details?: object
}

/** Warns about settings that can lose events, once per change: at runtime, or by a failover to another server. */
export function watchSettings(client: Redis, queue: string, logger: Logger): void {
  const isInOneSlot = /\{[^}]+\}/.test(queue)
  let known = new Set<string>()
  let isReadable = true
  everyMinute(client, async () => {
    try {
      const problems = findProblems(String(await client.call('INFO')), isInOneSlot)
      const fresh = problems.filter((problem) => !known.has(JSON.stringify(problem)))
      for (const { level, message, details = {} } of fresh) logger[level](details, message)
      known = new Set(problems.map((problem) => JSON.stringify(problem)))
      isReadable = true
    } catch (error) {
      // Outages are logged elsewhere, and closing isn't one.
      if (!isReadable || client.status !== 'ready') return
      isReadable = false
      logger.warn(
        { err: withoutCommand(error) },
        'cannot read the settings of Redis (allow it with +info). Make sure that appendonly is on and maxmemory-policy is noeviction',
      )
    }
  })
}

function findProblems(info: string, isInOneSlot: boolean): readonly Problem[] {
  const problems: Problem[] = []
  const policy = readField(info, 'maxmemory_policy')
  if (readField(info, 'aof_enabled') === '0')
    problems.push({
      level: 'warn',
      message: 'Redis has appendonly off: a restart can lose acknowledged events. Set appendonly to yes',
    })
  if (readField(info, 'cluster_enabled') === '1' && !isInOneSlot)
    problems.push({
      level: 'error',
      message:
        "Redis is a cluster and refuses events: the queue's name must have a hash tag, such as '{media-webhooks}'",
    })
  if (policy !== undefined && policy !== 'noeviction')
    problems.push({
      level: 'warn',
      message: 'Redis evicts keys when it is full, even acknowledged events. Set maxmemory-policy to noeviction',
      details: { policy },
    })
  return problems
}

/** Share of Redis memory above which no event is accepted. Handling needs more until the event is removed. */
const maxUsed = 0.9

/** How long a memory reading is valid (ms), and for how many events. */
const validMs = 1_000
const validEvents = 100

/** Memory limit for deliveries waiting for Redis (bytes). Most wait during an outage, up to `timeoutMs` each. */
const maxWaiting = 64 * 1024 * 1024

/** Tells, up to a second late, if Redis has room for more events. In a full Redis, none could be handled. */
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

  /** Stores a delivery of that size (bytes). Resolves with `undefined` if there is no room. */
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
    // If there was room, don't wait. If not, do: a rejected delivery may never come again.
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
    const readNumber = (name: string) => Number(readField(info, name) ?? 0)
    const maxMemory = readNumber('maxmemory')
    const usedMemory = readNumber('used_memory') - readNumber('mem_not_counted_for_evict')
    const isFull = maxMemory > 0 && usedMemory > maxUsed * maxMemory
    if (isFull === this.#isFull) return
    this.#isFull = isFull
    const details = { usedMemory, maxMemory }
    if (!isFull) return this.#logger.info(details, 'Redis has room for events again')
    const fix = 'Raise maxmemory, or discard dead letters'
    this.#logger.error(details, `Redis is more than 90 % full; deliveries are answered 503 until it has room. ${fix}`)
  }
}
