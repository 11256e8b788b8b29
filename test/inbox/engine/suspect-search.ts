import { vi } from 'vitest'
import { Suspects } from '../../../src/inbox/engine/suspects.ts'
import { SqliteJob, type Transactions } from '../../../src/inbox/sqlite-tables/job.ts'
import { eventOf } from '../../support/inbox.ts'

const noTransactions: Transactions = { run: () => Promise.reject(new Error('a search runs no handlers')) }

/** Makes an event that waits, and that ran alone during so many crashes. */
export function jobOf(key: string, { crashes = 0, mediaId = key } = {}): SqliteJob {
  const job = new SqliteJob(eventOf(key, mediaId), 1, noTransactions, { attempts: 0, completed: [], crashes })
  job.state = 'waiting'
  return job
}

export const keysOf = (jobs: readonly SqliteJob[]): string[] => jobs.map(({ key }) => key)

/** The state of things when a search begins. */
interface Beginning {
  /** The events that have been considered. */
  readonly suspects?: readonly SqliteJob[]
  /** `true` if more events are still to be considered. */
  readonly isReading?: boolean
  /** The number of crashes so far. */
  readonly crashes?: number
  /** `true` if the previous process may still be alive. */
  readonly mayBeAlive?: boolean
  /** The time that it takes to record which event runs alone, in ms. */
  readonly recordMs?: number
}

/** Begins a search with two slots, and notes what it does. Time is that of Vitest's fake timers. */
export function beginSearch(beginning: Beginning = {}) {
  const { suspects = [], isReading = false, crashes = 1, mayBeAlive = false, recordMs = 0 } = beginning
  /** The keys that were recorded as running alone; `undefined` for each record that none does. */
  const alone: (string | undefined)[] = []
  /** For each suspect, `true` if it had been handled at the end of the search. */
  const over: boolean[] = []
  const started: string[] = []
  const search = new Suspects({
    concurrency: 2,
    predecessor: { crashes, mayBeAlive },
    async recordAlone(job) {
      alone.push(job?.key)
      if (recordMs > 0) await new Promise((resolve) => setTimeout(resolve, recordMs))
    },
    onOver: (cleared) => void over.push(cleared),
  })
  for (const job of suspects) search.consider(job)
  if (!isReading) search.allConsidered()
  return {
    alone,
    over,
    consider: (job: SqliteJob) => search.consider(job),
    allConsidered: () => search.allConsidered(),
    /** Asks whether events may start. */
    enter(...jobs: SqliteJob[]) {
      for (const job of jobs) void search.enter(job).then(() => started.push(job.key))
    },
    leave: (job: SqliteJob) => search.leave(job),
    stop: () => search.stop(),
    /** Returns the keys of the events that have started, after so many ms. */
    async started(afterMs = 0) {
      await vi.advanceTimersByTimeAsync(afterMs)
      // A decision, and the record that it waits for.
      await vi.advanceTimersByTimeAsync(0)
      return [...started]
    },
  }
}
