import type { Logger } from '../../internal/logger.ts'
import type { EventQueue } from './queue.ts'

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
