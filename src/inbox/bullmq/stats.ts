import { type ActivityStorage, activityKeptMs, minuteOf, type StoredMinute } from '../operations/activity.ts'
import type { InboxStats } from '../reading.ts'
import type { BullmqEvents } from './events.ts'
import { countExpected } from './expectations.ts'
import { isEvent } from './job.ts'
import type { EventQueue } from './queue.ts'
import { KeptUnreadable } from './unreadable.ts'

/** Maximum number of jobs that are examined to find one that has not started. */
const maxExamined = 100

/** Counts the events in the queue by state. */
export async function readStats(queue: EventQueue, events: Pick<BullmqEvents, 'countHeld'>): Promise<InboxStats> {
  const [counts, held, unreadable, expected] = await Promise.all([
    queue.reach((jobs) => jobs.getJobCounts('wait', 'active', 'delayed', 'failed')),
    events.countHeld(),
    new KeptUnreadable(queue).count(),
    countExpected(queue),
  ])
  const { wait = 0, active = 0, delayed = 0, failed = 0 } = counts
  const oldestWaitingAt = wait > 0 ? await findOldest(queue) : undefined
  const running = Math.max(0, active - held)
  return {
    ...{ waiting: wait, running, retrying: delayed + active - running, deadLetters: failed + unreadable },
    ...(expected > 0 && { expected }),
    ...(oldestWaitingAt !== undefined && { oldestWaitingAt }),
  }
}

/** Finds the time of the first event that waits to start. An event that has started before waits for another attempt. */
async function findOldest(queue: EventQueue): Promise<Date | undefined> {
  for (const id of await queue.reach((jobs) => jobs.getRanges(['wait'], 0, maxExamined - 1, true))) {
    const job = await queue.reach((jobs) => jobs.getJob(id))
    if (job === undefined || job.attemptsStarted > 0) continue
    return isEvent(job.data) ? new Date(job.data.since ?? job.data.receivedAt) : undefined
  }
  return undefined
}

/** The time for which Redis keeps a minute, in ms: an hour longer than it is shown, since clocks differ. */
const ttlMs = activityKeptMs + 3_600_000

/** The activity in Redis, where each process has a field of its own for each minute. The inbox logs an outage. */
export function activityFields(queue: EventQueue): ActivityStorage {
  const process = crypto.randomUUID()
  return {
    write: (minutes) => queue.reach(() => queue.own.run('writeActivity', process, ttlMs, ...minutes.flat())),
    read: (first) => readMinutes(queue, first),
  }
}

/** Reads the activity of all processes, from a minute on. */
export function readMinutes(queue: EventQueue, first: number): Promise<readonly StoredMinute[]> {
  const now = Date.now()
  const kept = Math.max(first, minuteOf(now - activityKeptMs))
  // The clocks of other processes can be ahead.
  const last = minuteOf(now) + 1
  return queue.reach(() => queue.own.run<StoredMinute[]>('readActivity', kept, last))
}
