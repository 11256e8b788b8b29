import { type ActivityStorage, activityKeptMs, minuteOf, type StoredMinute } from '../operations/activity.ts'
import type { EventQueue } from './queue.ts'
import { readActivityScript, writeActivityScript } from './scripts.ts'

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
export async function readMinutes(queue: EventQueue, first: number): Promise<readonly StoredMinute[]> {
  const now = Date.now()
  const kept = Math.max(first, minuteOf(now - activityKeptMs))
  // The clocks of other processes can be ahead.
  const last = minuteOf(now) + 1
  const found = await queue.reach(() => queue.run<(number | string)[]>(readActivityScript, kept, last))
  const minutes: StoredMinute[] = []
  for (let i = 0; i < found.length; i += 2) minutes.push([Number(found[i]), String(found[i + 1])])
  return minutes
}
