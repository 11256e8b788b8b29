import { WebhookError } from '../../errors.ts'
import { checkedApart, checkOptions } from '../../internal/check-options.ts'
import { outage } from '../../internal/storage/outage.ts'
import { withoutCommand } from '../../internal/storage/reach-redis.ts'
import { within } from '../../internal/timers.ts'
import { firstMinute, toActivity } from '../operations/activity.ts'
import { readHistory } from '../operations/event-query.ts'
import { StoredOperations } from '../operations/operations.ts'
import { StoredPauses } from '../operations/pauses.ts'
import type { InspectedInbox } from '../reading.ts'
import type { RedisConnection } from './check-connection.ts'
import { findCluster } from './connection.ts'
import { BullmqDeadLetters } from './dead-letters.ts'
import { BullmqEvents } from './events.ts'
import { listExpected } from './expectations.ts'
import { operationList } from './operations.ts'
import { pauseStorage } from './pauses.ts'
import { checkQueue, disconnectMs, EventQueue, standardQueue } from './queue.ts'
import { readMinutes, readStats } from './stats.ts'

/** The options of `openInboxQueue`. */
export interface InboxQueueOptions {
  /** A Redis URL, ioredis options, or an ioredis client. A URL of any node of a Redis Cluster finds the others. */
  readonly connection: RedisConnection
  /**
   * Queue name in Redis.
   * @defaultValue 'media-webhooks'
   */
  readonly queue?: string
}

/** Time limit of a Redis step (ms). */
const timeoutMs = 10_000

/** How long a discarded event is remembered (ms): the default of `bullmqInbox`. */
const ttlMs = 86_400_000

/**
 * Opens the queue of a `bullmqInbox` for inspection. Creates no queue. Pages filtered by type, state or media item, and
 * histories, scan an index of all unfinished events.
 * @throws WebhookError `invalid_option`; `unavailable` when there is no such queue, or Redis cannot be reached
 */
export async function openInboxQueue(options: InboxQueueOptions): Promise<InspectedInbox> {
  checkOptions('openInboxQueue', options, { connection: checkedApart, queue: checkedApart })
  const { connection, queue: name = standardQueue } = options ?? {}
  checkQueue('openInboxQueue', connection, name)
  const found = await within(timeoutMs, findCluster(connection), () => connection)
  const queue = new EventQueue(name, found, timeoutMs)
  const close = () => queue.close(queue.isReady ? disconnectMs : 0)
  try {
    await within(timeoutMs, connected(queue), () => {
      throw new Error(`no answer within ${timeoutMs} ms`)
    })
    const version = await queue.reach((jobs) => jobs.getVersion())
    if (version === null) throw new WebhookError('unavailable', noQueue(name))
  } catch (cause) {
    await close()
    if (cause instanceof WebhookError) throw cause
    throw outage('Redis', withoutCommand(cause))
  }
  const events = new BullmqEvents(queue)
  return {
    stats: () => readStats(queue, events),
    deadLetters: new BullmqDeadLetters(queue, undefined, ttlMs),
    events,
    history: (mediaId) => readHistory(events, mediaId),
    expected: (limit) => listExpected(queue, limit),
    activity: async (since) => toActivity(await readMinutes(queue, firstMinute(since))),
    pauses: new StoredPauses(pauseStorage(queue)),
    operations: new StoredOperations(operationList(queue)),
    close,
  }
}

const noQueue = (name: string): string =>
  `Redis has no queue ${name} of an inbox: start a receiver with bullmqInbox, or check the name (option queue, or --queue)`

/** Resolves on connect. Rejects with the first error, although the client keeps trying. */
const connected = ({ client }: EventQueue): Promise<void> =>
  new Promise((resolve, reject) => {
    client.once('ready', resolve)
    client.once('error', reject)
  })
