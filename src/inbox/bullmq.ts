import { WebhookError } from '../errors.ts'
import { sizeOf } from '../events/json.ts'
import { checkedApart, checkOptions, flag, type Rules, wholeNumber } from '../internal/check-options.ts'
import { countdown, forLastSteps } from '../internal/countdown.ts'
import { measure } from '../internal/maybe-promise.ts'
import { within } from '../internal/timers.ts'
import type { RedisConnection } from './bullmq/check-connection.ts'
import { watchConnection } from './bullmq/connection.ts'
import { BullmqDeadLetters } from './bullmq/dead-letters.ts'
import { BullmqEvents } from './bullmq/events.ts'
import { addEvent, handOverOverdue, listExpected } from './bullmq/expectations.ts'
import { operationList } from './bullmq/operations.ts'
import { pauseStorage } from './bullmq/pauses.ts'
import { checkQueue, disconnectMs, EventQueue, standardQueue } from './bullmq/queue.ts'
import { Room, watchSettings } from './bullmq/server.ts'
import { activityFields, readStats } from './bullmq/stats.ts'
import { KeptUnreadable } from './bullmq/unreadable.ts'
import { BullmqWorker } from './bullmq/worker.ts'
import { Closing } from './closing.ts'
import { defineInbox } from './define-inbox.ts'
import { logReleased } from './engine/jobs.ts'
import type {
  Acceptance,
  AcceptedEvent,
  CloseOptions,
  CloseReport,
  Inbox,
  InboxDefinition,
  InboxHost,
} from './inbox.ts'
import { StoredActivity } from './operations/activity.ts'
import { historyOf } from './operations/event-query.ts'
import { StoredOperations } from './operations/operations.ts'
import { StoredPauses } from './operations/pauses.ts'
import type { ActivityMinute, EventRecord, InboxStats, OpenExpectation, Pause, UnreadableDelivery } from './reading.ts'

export type { RedisConnection } from './bullmq/check-connection.ts'
export { type InboxQueueOptions, openInboxQueue } from './bullmq/inspection.ts'

/** The options of `bullmqInbox`. */
export interface BullmqInboxOptions {
  /**
   * The URL of Redis, options for ioredis, or a client of ioredis, whose options are used. The inbox makes connections of its
   * own and closes them.
   */
  readonly connection: RedisConnection
  /**
   * The name of the queue in Redis. Receivers that name the same one share their events. In Redis Cluster it needs a hash
   * tag: `{media-webhooks}`.
   * @defaultValue `media-webhooks`
   */
  readonly queue?: string
  /**
   * `false` for a process that only accepts events, which others handle. Register the same handlers in both, with the same
   * names: a receiver ignores events of a type that it has no handler for.
   * @defaultValue true
   */
  readonly handles?: boolean
  /**
   * The number of events that this process handles at a time.
   * @defaultValue 16
   */
  readonly concurrency?: number
  /**
   * The time for which an event stays with a process that has stopped answering, in ms. It must be longer than handlers
   * keep the event loop busy: leases are renewed every third of it.
   * @defaultValue 30_000
   */
  readonly leaseMs?: number
  /**
   * The time for which an event is remembered after it was handled, in ms.
   * @defaultValue 86_400_000 (24 h)
   */
  readonly ttlMs?: number
  /**
   * The time for which a step may wait for a Redis that is disconnected or does not answer, in ms. Keep it below the time
   * that the sender gives a delivery.
   * @defaultValue 2_000
   */
  readonly timeoutMs?: number
}

type Settings = Required<BullmqInboxOptions>

/**
 * An inbox in Redis: a BullMQ queue that any number of processes fill and empty. It survives the loss of any of them,
 * and is as safe against the loss of Redis as its settings: `appendonly yes` and `maxmemory-policy noeviction`. It keeps
 * no order among the events of one media item. While Redis is disconnected, deliveries wait up to `timeoutMs` for it, and are
 * answered 503 then; the inbox recovers by itself. So are deliveries while Redis is more than 90 % full. It keeps the
 * newest 1,000 unreadable deliveries.
 *
 * It forgets an event once it is handled, but for its key. A page of `events.list` and a `history` go through an index of
 * the events in the queue.
 *
 * BullMQ adds an event in a step of its own, and the event's effects on expectations with it. They are applied in the next
 * step, before the delivery is acknowledged: what an acknowledged event has ended is never reported. A process that crashes
 * in between loses nothing: they are applied when the sender repeats the delivery, or before the event's first handler
 * runs. A deadline that passes before that is reported, as if the event had come after it. What is overdue becomes an event
 * in a process with handlers, at its deadline or up to a second later.
 *
 * ```ts
 * const receiver = createReceiver({ verify, inbox: bullmqInbox({ connection: process.env.REDIS_URL! }) })
 * ```
 * @throws WebhookError `invalid_option`
 */
export function bullmqInbox(options: BullmqInboxOptions): InboxDefinition {
  checkOptions('bullmqInbox', options, rules)
  const { connection, queue = standardQueue, handles = true, concurrency = 16 } = options ?? {}
  const { leaseMs = 30_000, ttlMs = 86_400_000, timeoutMs = 2_000 } = options ?? {}
  checkQueue('bullmqInbox', connection, queue)
  const settings = { connection, queue, handles, concurrency, leaseMs, ttlMs, timeoutMs }
  const open = (host: InboxHost) => new BullmqInbox(host, settings)
  return defineInbox({ name: 'bullmqInbox', expects: true, storage: 'database', open })
}

const rules: Rules<BullmqInboxOptions> = {
  connection: checkedApart,
  queue: checkedApart,
  handles: flag,
  concurrency: wholeNumber(),
  leaseMs: wholeNumber(),
  ttlMs: wholeNumber(),
  timeoutMs: wholeNumber(),
}

class BullmqInbox implements Inbox {
  readonly deadLetters: BullmqDeadLetters
  readonly events: BullmqEvents
  readonly pauses: StoredPauses
  readonly operations: StoredOperations
  readonly #host: InboxHost
  readonly #queue: EventQueue
  readonly #room: Room
  readonly #activity: StoredActivity
  readonly #worker: BullmqWorker | undefined
  readonly #stopOverdue: (() => void) | undefined
  readonly #ttlMs: number
  readonly #closing = new Closing('the inbox is closing', (timeoutMs) => this.#close(timeoutMs))

  constructor(host: InboxHost, settings: Settings) {
    const { connection, queue, handles, ttlMs, timeoutMs } = settings
    this.#host = host
    this.#queue = new EventQueue(queue, connection, timeoutMs, host.logger)
    this.#room = new Room(this.#queue, host.logger)
    watchConnection(this.#queue.client, host.logger, () => this.#closing.hasStarted)
    watchSettings(this.#queue.client, queue, host.logger)
    this.deadLetters = new BullmqDeadLetters(this.#queue, host, ttlMs)
    this.#activity = new StoredActivity(activityFields(this.#queue))
    this.#activity.start()
    host.observe(this.#activity.recorder)
    const obey = (pauses: readonly Pause[]) => this.#worker?.obey(pauses)
    this.operations = new StoredOperations(operationList(this.#queue))
    this.pauses = new StoredPauses(pauseStorage(this.#queue), { host, obey: handles ? obey : undefined })
    const readPauses = () => this.pauses.read()
    const worker = handles ? new BullmqWorker(this.#queue, host, settings, readPauses) : undefined
    this.#worker = worker
    this.events = new BullmqEvents(this.#queue, worker)
    this.#stopOverdue = handles ? handOverOverdue(this.#queue) : undefined
    this.#ttlMs = ttlMs
  }

  async accept(accepted: AcceptedEvent): Promise<Acceptance> {
    this.#closing.checkOpen()
    const add = async () => {
      await this.#worker?.publish()
      return (await addEvent(this.#queue, this.#host, accepted, this.#ttlMs)) ? 'accepted' : 'duplicate'
    }
    const stored = () => this.#room.store(sizeOf(accepted.event), add)
    return (await measure(this.#host.measured, 'accept', stored)) ?? 'overloaded'
  }

  async keepUnreadable(unreadable: UnreadableDelivery): Promise<void> {
    this.#closing.checkOpen()
    const keep = async () => {
      await new KeptUnreadable(this.#queue).keep(unreadable)
      return true
    }
    if ((await this.#room.store(unreadable.body.byteLength, keep)) === undefined)
      throw new WebhookError('overloaded', 'Redis is almost full, or too many deliveries wait for it')
  }

  stats(): Promise<InboxStats> {
    return readStats(this.#queue, this.events)
  }

  expected(limit?: number): Promise<readonly OpenExpectation[]> {
    return listExpected(this.#queue, limit)
  }

  history(mediaId: string): Promise<readonly EventRecord[]> {
    return historyOf(this.events, mediaId)
  }

  activity(since: Date): Promise<readonly ActivityMinute[]> {
    return this.#activity.since(since)
  }

  close(options?: CloseOptions): Promise<CloseReport> {
    return this.#closing.start(options)
  }

  async #close(timeoutMs: number): Promise<CloseReport> {
    const left = countdown(timeoutMs)
    this.#stopOverdue?.()
    await this.#worker?.finish(left)
    const last = forLastSteps(left)
    const unfinished = (await this.#worker?.release(last)) ?? []
    const disconnect = countdown(last(disconnectMs))
    const written = this.#activity.finish().catch(() => {})
    // Without Redis the rest is lost, and so is the activity of this process with it.
    if (this.#queue.isReady) await within(disconnect(), written, () => {})
    await this.#queue.close(disconnect())
    logReleased(unfinished, this.#host.logger)
    return { unfinished }
  }
}
