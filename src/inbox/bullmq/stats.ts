import type { InboxStats } from '../reading.ts'
import { isEvent } from './job.ts'
import type { EventQueue } from './queue.ts'
import { oldestWaitingScript } from './scripts.ts'

/** The number of jobs that are examined to find one that has not started. */
const lookedAt = 100

/** Counts the events in the queue by state. */
export async function readStats(queue: EventQueue): Promise<InboxStats> {
  const counts = await queue.reach((jobs) => jobs.getJobCounts('wait', 'active', 'delayed', 'failed'))
  const { wait = 0, active = 0, delayed = 0, failed = 0 } = counts
  const stats = { waiting: wait, running: active, retrying: delayed, deadLetters: failed }
  const oldest = wait > 0 ? await queue.reach(() => queue.run<string | null>(oldestWaitingScript, lookedAt)) : null
  const data: unknown = oldest === null ? undefined : JSON.parse(oldest)
  return isEvent(data) ? { ...stats, oldestWaitingAt: new Date(data.since ?? data.receivedAt) } : stats
}
