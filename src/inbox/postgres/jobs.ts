import { Jobs } from '../engine/jobs.ts'
import type { HeldEvent } from './claimed.ts'
import type { PostgresJob } from './job.ts'
import type { LongRunning } from './lease.ts'

/** Maximum number of attempts that a process publishes, of those that have been running for longest. */
const maxPublished = 100

/** The claimed events of this process, and what it tells others about them. */
export class PostgresJobs extends Jobs<PostgresJob> {
  /** The start of the attempts that are running, by the ids of their events. */
  started(): ReadonlyMap<string, Date> {
    return new Map(this.#running().map(({ id, since }) => [id, new Date(since)]))
  }

  /** Returns the attempts that have been running for longer than `ms`, if there are any. */
  longRunning(ms: number): LongRunning | undefined {
    const before = Date.now() - ms
    const long = this.#running().filter(({ since }) => since <= before)
    if (long.length === 0) return undefined
    const longest = long.sort((a, b) => a.since - b.since).slice(0, maxPublished)
    return Object.fromEntries(longest.map(({ id, since }) => [id, since]))
  }

  #running(): PostgresJob[] {
    return [...this].filter(({ shownState }) => shownState === 'running')
  }

  ofRow(id: string): PostgresJob | undefined {
    return [...this].find((job) => job.id === id)
  }

  /** The events that this process has. */
  held(): readonly HeldEvent[] {
    return Array.from(this, ({ id, releases }) => ({ id, releases }))
  }

  /** Counts the events of each media item. */
  ofEachMedia(): Map<string, number> {
    const counts = new Map<string, number>()
    for (const { lane } of this) counts.set(lane, (counts.get(lane) ?? 0) + 1)
    return counts
  }
}
