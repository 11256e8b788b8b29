import { Jobs } from '../engine/jobs.ts'
import type { EventId, HeldEvent } from './event.ts'
import type { SqlJob } from './job.ts'

/** Maximum number of attempts that a process publishes, the longest ones. */
const maxPublished = 100

/** The events this process holds, and what it tells others about them. */
export class SqlJobs extends Jobs<SqlJob> {
  /** Running attempts by event id. */
  started(): ReadonlyMap<EventId, SqlJob['running']> {
    return new Map(this.#running().map((job) => [job.id, job.running]))
  }

  /** Starts (ms since the epoch) of the attempts that have been running for longer than `ms`, if there are any. */
  longRunning(ms: number): Readonly<Record<string, number>> | undefined {
    const before = Date.now() - ms
    const long = this.#running().filter(({ since }) => since <= before)
    if (long.length === 0) return undefined
    const longest = long.sort((a, b) => a.since - b.since).slice(0, maxPublished)
    return Object.fromEntries(longest.map(({ id, since }) => [id, since]))
  }

  #running(): SqlJob[] {
    return [...this].filter(({ shownState }) => shownState === 'running')
  }

  ofId(id: string): SqlJob | undefined {
    return [...this].find((job) => `${job.id}` === id)
  }

  held(): readonly HeldEvent[] {
    return Array.from(this, ({ id, releases }) => ({ id, releases }))
  }

  /** Number of events by media item. */
  ofEachMedia(): Map<string, number> {
    const counts = new Map<string, number>()
    for (const { lane } of this) counts.set(lane, (counts.get(lane) ?? 0) + 1)
    return counts
  }
}
