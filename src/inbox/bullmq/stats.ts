import type { InboxStats } from '../reading.ts'
import type { EventQueue } from './queue.ts'

/** Counts the events in the queue by state. */
export async function readStats(queue: EventQueue): Promise<InboxStats> {
  const counts = await queue.reach((jobs) => jobs.getJobCounts('wait', 'active', 'delayed', 'failed'))
  const { wait = 0, active = 0, delayed = 0, failed = 0 } = counts
  return { waiting: wait, running: active, retrying: delayed, deadLetters: failed }
}
