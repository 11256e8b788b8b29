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
import { acceptOverdue, addEvent, countExpected, listExpected } from './bullmq/expectations.ts'
import { operationList } from './bullmq/operations.ts'
import { pauseStorage } from './bullmq/pauses.ts'
import { checkQueue, disconnectMs, EventQueue, standardQueue } from './bullmq/queue.ts'
import { Room, watchSettings } from './bullmq/server.ts'
import { activityFields, readStats } from './bullmq/stats.ts'
import { KeptUnreadable } from './bullmq/unreadable.ts'
import { BullmqWorker } from './bullmq/worker.ts'
import { Closing } from './closing.ts'
import { defineInbox } from './define-inbox.ts'
import { logReleased } from './engine/attempts.ts'
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
import { readHistory } from './operations/event-query.ts'
import { StoredOperations } from './operations/operations.ts'
import { StoredPauses } from './operations/pauses.ts'
import type { ActivityMinute, EventRecord, InboxStats, OpenExpectation, Pause, UnreadableDelivery } from './reading.ts'

export type { RedisConnection } from './bullmq/check-connection.ts'
export { type InboxQueueOptions, openInboxQueue } from './bullmq/inspection.ts'

/** The options of `bullmqInbox`. */
export interface BullmqInboxOptions {
  /**
   * A Redis URL, ioredis options, or an ioredis client, whose options are used. The inbox opens its own connections.
   */
  readonly connection: RedisConnection
  /**
   * Queue name, shared by receivers that share their events. Redis Cluster needs a hash tag: `{media-webhooks}`.
   * @defaultValue `media-webhooks`
   */
  readonly queue?: string
  /**
   * `false` for a process that only accepts events for others to handle. Register the same handlers under the same
   * names in both: a receiver ignores events of a type that it has no handler for.
   * @defaultValue true
   */
  readonly handles?: boolean
  /**
   * Events handled at a time by this process.
   * @defaultValue 16
   */
  readonly concurrency?: number
  /**
   * How long an unresponsive process keeps an event (ms). Must exceed the longest time that handlers block the event
   * loop: leases are renewed every third of it.
   * @defaultValue 30_000
   */
  readonly leaseMs?: number
  /**
   * How long a handled event is remembered (ms).
   * @defaultValue 86_400_000 (24 h)
   */
  readonly ttlMs?: number
  /**
   * Longest wait for a disconnected or silent Redis (ms). Keep it below the sender's delivery timeout.
   * @defaultValue 2_000
   */
  readonly timeoutMs?: number
}

type Settings = Required<BullmqInboxOptions>

/**
 * An inbox in Redis: a BullMQ queue shared by any number of processes. It survives the loss of any of them, and is as
 * safe against the loss of Redis as its settings: use `appendonly yes` and `maxmemory-policy noeviction`. Events of one
 * media item are not ordered. While Redis is disconnected, deliveries wait up to `timeoutMs`, then get 503; the inbox
 * recovers by itself. Deliveries also get 503 while Redis is more than 90 % full. Keeps the newest 1,000 unreadable
 * deliveries.
 *
 * Once handled, an event is forgotten except for its key. `events.list` and `history` scan an index of the events in
 * the queue.
 *
 * BullMQ adds an event in one step, and its expectation changes follow in the next, before the delivery is
 * acknowledged: an expectation ended by an acknowledged event is never reported. A crash in between loses nothing: the
 * changes are applied when the sender repeats the delivery, or before the event's first handler runs. A deadline that
 * passes first is reported, as if the event had come after it. Any process with handlers turns an overdue expectation
 * into an event, at most a second late.
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
    const applyPauses = (pauses: readonly Pause[]) => this.#worker?.applyPauses(pauses)
    this.operations = new StoredOperations(operationList(this.#queue))
    this.pauses = new StoredPauses(pauseStorage(this.#queue), { host, applyPauses: handles ? applyPauses : undefined })
    const readPauses = () => this.pauses.read()
    const worker = handles ? new BullmqWorker(this.#queue, host, settings, readPauses) : undefined
    this.#worker = worker
    this.events = new BullmqEvents(this.#queue, worker)
    this.#stopOverdue = handles ? acceptOverdue(this.#queue) : undefined
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

  async ready(): Promise<void> {
    this.#closing.checkOpen()
    await countExpected(this.#queue)
  }

  stats(): Promise<InboxStats> {
    return readStats(this.#queue, this.events)
  }

  expected(limit?: number): Promise<readonly OpenExpectation[]> {
    return listExpected(this.#queue, limit)
  }

  history(mediaId: string): Promise<readonly EventRecord[]> {
    return readHistory(this.events, mediaId)
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
    // Without Redis, this process's unwritten activity is lost.
    if (this.#queue.isReady) await within(disconnect(), written, () => {})
    await this.#queue.close(disconnect())
    logReleased(unfinished, this.#host.logger)
    return { unfinished }
  }
}
