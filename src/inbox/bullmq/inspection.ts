import type { RedisOptions } from 'ioredis'
import { checkUnknown } from '../../check-options.ts'
import { WebhookError } from '../../errors.ts'
import { within } from '../../internal/timers.ts'
import { withoutCommand } from '../../storage/reach-redis.ts'
import { minuteOf, toActivity } from '../operations/activity.ts'
import { historyOf } from '../operations/event-query.ts'
import { StoredPauses } from '../operations/pauses.ts'
import type {
  ActivityMinute,
  DeadLetters,
  EventRecord,
  InboxEvents,
  InboxStats,
  OpenExpectation,
  Pauses,
  ReadableInbox,
} from '../reading.ts'
import { BullmqDeadLetters } from './dead-letters.ts'
import { BullmqEvents } from './events.ts'
import { listExpected } from './expectations.ts'
import { pauseStorage } from './pauses.ts'
import { checkQueue, disconnectMs, EventQueue, standardQueue } from './queue.ts'
import { readMinutes, readStats } from './stats.ts'

/** The options of `openInboxQueue`. */
export interface InboxQueueOptions {
  /** The URL of Redis, or options for ioredis. */
  readonly connection: string | RedisOptions
  /**
   * The name of the queue in Redis.
   * @defaultValue 'media-webhooks'
   */
  readonly queue?: string
}

/** The queue of a `bullmqInbox`, opened for inspection. Receivers can handle its events meanwhile. */
export interface InboxQueue extends ReadableInbox {
  /** Counts the events by state. */
  stats(): Promise<InboxStats>
  /** Lists, replays and discards dead letters. */
  readonly deadLetters: InboxQueueDeadLetters
  /**
   * Lists events, and retries them. A page examines all the events in the requested states, half a second for 100,000.
   */
  readonly events: InboxEvents
  /** Returns the newest 1,000 unfinished events of a media item. It examines all the events in the queue. */
  history(mediaId: string): Promise<readonly EventRecord[]>
  /** Lists the `limit` (100 by default) open expectations that are due first. */
  expected(limit?: number): Promise<readonly OpenExpectation[]>
  /** Returns what all receivers did, minute by minute. The numbers are up to 5 s old. */
  activity(since: Date): Promise<readonly ActivityMinute[]>
  /** Pauses and resumes the handling of events. Receivers obey within two seconds. */
  readonly pauses: Pauses
  /** Closes the connection. */
  close(): Promise<void>
}

/**
 * The dead letters in the queue of a `bullmqInbox`. A running receiver handles replayed ones immediately. Without one,
 * the next receiver that opens the inbox handles them.
 */
export interface InboxQueueDeadLetters extends DeadLetters {
  /** Lists the keys of all dead letters, oldest first. */
  keys(): Promise<readonly string[]>
  /**
   * Replays the dead letters with those keys, and returns the keys of the replayed ones. A receiver parses an
   * unreadable delivery again. It becomes a dead letter again if it still cannot be parsed.
   */
  replayMany(keys: readonly string[]): Promise<readonly string[]>
  /** Deletes the dead letters with those keys permanently, and returns the keys of the deleted ones. */
  discardMany(keys: readonly string[]): Promise<readonly string[]>
}

/** Maximum time that a step in Redis may take, in ms. */
const timeoutMs = 10_000

/** The time for which a discarded event is remembered, in ms: the default of `bullmqInbox`. */
const ttlMs = 86_400_000

/**
 * Opens the queue of a `bullmqInbox` to inspect it, and to replay or discard dead letters. It handles nothing and makes
 * no queue.
 * @throws WebhookError `invalid_option`; `unavailable` when there is no such queue, or Redis cannot be reached
 */
export async function openInboxQueue(options: InboxQueueOptions): Promise<InboxQueue> {
  const { connection, queue: name = standardQueue, ...unknown } = options
  checkUnknown('openInboxQueue', unknown)
  checkQueue('openInboxQueue', connection, name)
  const queue = new EventQueue(name, connection, timeoutMs, true)
  const close = () => queue.close(queue.isReady ? disconnectMs : 0)
  try {
    await within(timeoutMs, connected(queue), () => {
      throw new Error(`no answer from Redis within ${timeoutMs} ms`)
    })
    const isThere = await queue.reach(() => queue.client.exists(queue.jobs.toKey('meta')))
    if (isThere === 0) throw new WebhookError('unavailable', noQueue(name))
  } catch (cause) {
    await close()
    if (cause instanceof WebhookError) throw cause
    throw new WebhookError('unavailable', 'Redis gave no answer, or an error', { cause: withoutCommand(cause) })
  }
  const events = new BullmqEvents(queue)
  return {
    stats: () => readStats(queue),
    deadLetters: new BullmqDeadLetters(queue, undefined, ttlMs),
    events,
    history: (mediaId) => historyOf(events, mediaId),
    expected: (limit) => listExpected(queue, limit),
    activity: async (since) => toActivity(await readMinutes(queue, minuteOf(since.getTime()))),
    pauses: new StoredPauses(pauseStorage(queue)),
    close,
  }
}

const noQueue = (name: string): string =>
  `Redis has no queue ${name} of an inbox: start a receiver with bullmqInbox, or give the queue's name (queue, or --queue)`

/** Resolves when the client has connected. Rejects with the first error, although the client continues to try. */
const connected = ({ client }: EventQueue): Promise<void> =>
  new Promise((resolve, reject) => {
    client.once('ready', resolve)
    client.once('error', reject)
  })
