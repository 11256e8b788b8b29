import { type ActivityStorage, activityKeptMs, minuteOf, type StoredMinute } from '../operations/activity.ts'
import type { InboxStats } from '../reading.ts'
import { countExpected } from './expectations.ts'
import { isEvent } from './job.ts'
import type { EventQueue } from './queue.ts'
import { oldestWaitingScript, readActivityScript, writeActivityScript } from './scripts.ts'

/** The number of jobs that are examined to find one that has not started. */
const lookedAt = 100

/** Counts the events in the queue by state. */
export async function readStats(queue: EventQueue): Promise<InboxStats> {
  const [counts, expected] = await Promise.all([
    queue.reach((jobs) => jobs.getJobCounts('wait', 'active', 'delayed', 'failed')),
    countExpected(queue),
  ])
  const { wait = 0, active = 0, delayed = 0, failed = 0 } = counts
  const stats = {
    waiting: wait,
    running: active,
    retrying: delayed,
    deadLetters: failed,
    ...(expected > 0 && { expected }),
  }
  const oldest = wait > 0 ? await queue.reach(() => queue.run<string | null>(oldestWaitingScript, lookedAt)) : null
  const data: unknown = oldest === null ? undefined : JSON.parse(oldest)
  return isEvent(data) ? { ...stats, oldestWaitingAt: new Date(data.since ?? data.receivedAt) } : stats
}

/** The time for which Redis keeps a minute, in ms: an hour longer than it is shown, since clocks differ. */
const ttlMs = activityKeptMs + 3_600_000

/** The activity in Redis, where each process has a field of its own for each minute. The inbox logs an outage. */
export function activityFields(queue: EventQueue): ActivityStorage {
  const process = crypto.randomUUID()
  return {
    write: (minutes) => queue.reach(() => queue.run(writeActivityScript, process, ttlMs, ...minutes.flat())),
    read: (first) => readMinutes(queue, first),
  }
}

/** Reads the activity of all processes, from a minute on. */
export function readMinutes(queue: EventQueue, first: number): Promise<readonly StoredMinute[]> {
  const now = Date.now()
  const kept = Math.max(first, minuteOf(now - activityKeptMs))
  // The clocks of other processes can be ahead.
  const last = minuteOf(now) + 1
  return queue.reach(() => queue.run<StoredMinute[]>(readActivityScript, kept, last))
}
