import type { Redis, RedisOptions } from 'ioredis'
import { WebhookError } from '../errors.ts'
import { checkNumbers } from '../internal/check-options.ts'
import { consoleLogger, type Logger } from '../internal/logger.ts'
import { within } from '../internal/timers.ts'
import { BullmqDeadLetters } from './bullmq/dead-letters.ts'
import { BullmqHandling, type BullmqHandlingOptions } from './bullmq/handling.ts'
import { EventQueue } from './bullmq/queue.ts'
import { warnOfWeakSettings } from './bullmq/settings.ts'
import type {
  Acceptance,
  AcceptedEvent,
  CloseOptions,
  CloseReport,
  Handle,
  Inbox,
  InboxStats,
  ReadRefused,
  RefusedDelivery,
} from './inbox.ts'
import { closingTime } from './shared/closing.ts'
import { unreadable } from './shared/unreadable.ts'

export interface BullmqInboxOptions {
  /** The URL of Redis, or options for ioredis. The inbox makes connections of its own and closes them. */
  readonly connection: string | RedisOptions
  /**
   * The name of the queue in Redis. Receivers that name the same one share their events.
   * @defaultValue `media-webhooks`
   */
  readonly queue?: string
  /**
   * Whether this process handles events, or only accepts them for others. A receiver ignores events of a type that it
   * has no handler for: register the same handlers in both.
   * @defaultValue true
   */
  readonly handles?: boolean
  /**
   * How many events this process handles at a time.
   * @defaultValue 16
   */
  readonly concurrency?: number
  /**
   * How long an event stays with a process that has stopped answering, in ms. Longer than handlers may keep the event
   * loop busy: leases are renewed every third of it.
   * @defaultValue 30_000
   */
  readonly leaseMs?: number
  /**
   * How long an event is remembered after it was handled, in ms.
   * @defaultValue 86_400_000 (24 h)
   */
  readonly ttlMs?: number
  /**
   * How long a step may wait for a Redis that does not answer, in ms. Below the time that the sender gives a delivery.
   * @defaultValue 2_000
   */
  readonly timeoutMs?: number
}

/** How long closing waits for Redis once the handlers are done, or given up on, in ms. */
const farewellMs = 1_000

/**
 * Keeps accepted events in Redis, in a queue of BullMQ that any number of processes fill and empty. It is safe against
 * the loss of any of them, and as safe against the loss of Redis as its settings: `appendonly yes` and
 * `maxmemory-policy noeviction`. It keeps no order among the events of one media. While Redis is gone, deliveries are
 * answered 503 at once; it recovers by itself. Of genuine deliveries that cannot be read it keeps the newest 1,000.
 *
 * ```ts
 * const inbox = bullmqInbox({ connection: process.env.REDIS_URL! })
 * ```
 * @throws WebhookError `invalid_option`
 */
export function bullmqInbox(options: BullmqInboxOptions): Inbox {
  return new BullmqInbox(options)
}

class BullmqInbox implements Inbox {
  readonly deadLetters: BullmqDeadLetters
  readonly #events: EventQueue
  readonly #options: BullmqHandlingOptions & { readonly handles: boolean }
  #handling: BullmqHandling | undefined
  #logger: Logger | undefined
  #closing: Promise<CloseReport> | undefined

  constructor({
    connection,
    queue = 'media-webhooks',
    handles = true,
    concurrency = 16,
    leaseMs = 30_000,
    ttlMs = 86_400_000,
    timeoutMs = 2_000,
  }: BullmqInboxOptions) {
    checkNumbers('bullmqInbox', { concurrency, leaseMs, ttlMs, timeoutMs })
    if (typeof connection !== 'string' && (typeof connection !== 'object' || connection === null))
      throw new WebhookError('invalid_option', 'bullmqInbox: connection has to be a URL or options for ioredis')
    if (typeof queue !== 'string' || !/^[^:]+$/.test(queue))
      throw new WebhookError('invalid_option', 'bullmqInbox: queue has to be a name without a colon')
    this.#options = { handles, concurrency, leaseMs, ttlMs }
    this.#events = new EventQueue(queue, connection, timeoutMs)
    this.deadLetters = new BullmqDeadLetters(this.#events, ttlMs)
  }

  start(handle: Handle, logger: Logger, readRefused: ReadRefused = unreadable): void {
    if (this.#logger !== undefined) throw new WebhookError('invalid_option', 'an inbox serves one receiver')
    this.#logger = logger
    this.#watch(this.#events.client, logger)
    this.deadLetters.readWith(readRefused)
    if (!this.#options.handles) return
    this.#handling = new BullmqHandling({ events: this.#events, handle, readRefused, logger }, this.#options)
  }

  #watch(client: Redis, logger: Logger): void {
    void warnOfWeakSettings(client, logger)
    let isGone = false
    client.on('ready', () => {
      if (isGone) logger.info({}, 'the connection to Redis is there again')
      isGone = false
    })
    // Told of every try to connect that fails, too.
    client.on('close', () => {
      if (!isGone && this.#closing === undefined)
        logger.error({}, 'there is no connection to Redis; deliveries are refused')
      isGone = true
    })
  }

  async accept(accepted: AcceptedEvent): Promise<Acceptance> {
    this.#checkOpen()
    return this.#events.add(accepted)
  }

  async refuse(refused: RefusedDelivery): Promise<void> {
    this.#checkOpen()
    await this.#events.refuse(refused)
  }

  #checkOpen(): void {
    if (this.#closing !== undefined) throw new WebhookError('closing', 'the inbox is closing')
  }

  async stats(): Promise<InboxStats> {
    const counts = await this.#events.reach((jobs) => jobs.getJobCounts('wait', 'active', 'delayed', 'failed'))
    const { wait = 0, active = 0, delayed = 0, failed = 0 } = counts
    return { waiting: wait, running: active, retrying: delayed, deadLetters: failed }
  }

  close(options?: CloseOptions): Promise<CloseReport> {
    const timeoutMs = closingTime(options)
    this.#closing ??= this.#close(timeoutMs)
    return this.#closing
  }

  async #close(timeoutMs: number): Promise<CloseReport> {
    const unfinished = (await this.#handling?.close(timeoutMs)) ?? []
    await within(farewellMs, this.#events.close(), () => {}).catch(() => {})
    this.#events.client.disconnect()
    const logger = this.#logger ?? consoleLogger
    for (const { event, state } of unfinished) {
      const { key, type, mediaId } = event
      logger.warn(
        { key, type, mediaId, state },
        'the inbox closed before the event was handled; another will handle it',
      )
    }
    return { unfinished }
  }
}
