import { Jobs } from '../engine/jobs.ts'
import type { EventId, HeldEvent } from './event.ts'
import type { SqlJob } from './job.ts'

/** Maximum number of attempts a process publishes, longest first. */
const maxPublished = 100

export class SqlJobs extends Jobs<SqlJob> {
  started(): ReadonlyMap<EventId, SqlJob['running']> {
    return new Map(this.#running().map((job) => [job.id, job.running]))
  }

  /** Start times (ms since the epoch) of attempts running for more than `ms`. `undefined` if there are none. */
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

  ofEachMedia(): Map<string, number> {
    const counts = new Map<string, number>()
    for (const { lane } of this) counts.set(lane, (counts.get(lane) ?? 0) + 1)
    return counts
  }
}
