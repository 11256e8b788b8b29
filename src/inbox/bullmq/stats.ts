import { crypto } from '../../internal/realm.ts'
import { type ActivityStorage, activityKeptMs, minuteOf, type StoredMinute } from '../operations/activity.ts'
import type { InboxStats } from '../reading.ts'
import type { BullmqEvents } from './events.ts'
import { countExpected } from './expectations.ts'
import { isEvent } from './job.ts'
import { type EventQueue, waitingTypes } from './queue.ts'
import { KeptUnreadable } from './unreadable.ts'

/** Jobs examined to find one that has not started. */
const maxExamined = 100

export async function readStats(queue: EventQueue, events: Pick<BullmqEvents, 'countHeld'>): Promise<InboxStats> {
  const [counts, held, unreadable, expected] = await Promise.all([
    queue.reach((jobs) => jobs.getJobCounts(...waitingTypes, 'active', 'delayed', 'failed')),
    events.countHeld(),
    new KeptUnreadable(queue).count(),
    countExpected(queue),
  ])
  const { wait = 0, paused = 0, active = 0, delayed = 0, failed = 0 } = counts
  const waiting = wait + paused
  const oldestWaitingAt = waiting > 0 ? await findOldest(queue) : undefined
  const running = Math.max(0, active - held)
  return {
    waiting,
    running,
    retrying: delayed + active - running,
    deadLetters: failed + unreadable,
    ...(expected > 0 && { expected }),
    ...(oldestWaitingAt !== undefined && { oldestWaitingAt }),
  }
}

/** Returns when the first event that has not started was received. A started one waits for another attempt. */
async function findOldest(queue: EventQueue): Promise<Date | undefined> {
  for (const id of await queue.reach((jobs) => jobs.getRanges(waitingTypes, 0, maxExamined - 1, true))) {
    const job = await queue.reach((jobs) => jobs.getJob(id))
    if (job === undefined || job.attemptsStarted > 0) continue
    return isEvent(job.data) ? new Date(job.data.since ?? job.data.receivedAt) : undefined
  }
  return undefined
}

/** TTL of an activity minute (ms): an hour longer than shown, since clocks differ. */
const ttlMs = activityKeptMs + 3_600_000

/** Activity in Redis: one field per process and minute. The inbox logs outages. */
export function activityFields(queue: EventQueue): ActivityStorage {
  const process = crypto.randomUUID()
  return {
    write: (minutes) => queue.reach(() => queue.own.run('writeActivity', process, ttlMs, ...minutes.flat())),
    read: (first) => readMinutes(queue, first),
  }
}

export function readMinutes(queue: EventQueue, first: number): Promise<readonly StoredMinute[]> {
  const now = Date.now()
  const kept = Math.max(first, minuteOf(now - activityKeptMs))
  // Other processes' clocks may be ahead.
  const last = minuteOf(now) + 1
  return queue.reach(() => queue.own.run<StoredMinute[]>('readActivity', kept, last))
}
