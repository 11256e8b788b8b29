import { later, type Timer, unref } from '../../internal/timers.ts'
import type { Job } from './job.ts'

// Finds the event that makes a process crash, so that it cannot keep the others from being handled. The storage has two
// numbers: for each event the crashes while it ran alone, and for the process the crashes in a row. The search:
//
//   held       The previous process may still run, and notices soon that it has to stop. No event starts.
//              -> searching, after `handoverMs`, or immediately if that process is dead.
//   searching  Every event asks before it starts. Those that may have been running during the crash are suspects.
//              - A suspect starts alone: nothing else runs, and its name is recorded first. If the process crashes now,
//                it is that event. When it has ended, it is no longer a suspect.
//              - If a suspect has crashed a process before, it comes after the others, in turns. While only such
//                suspects remain, the other events have a head start of `headStartMs`.
//              - Other events wait while a suspect runs, or can run.
//              -> over, when there are no more suspects (`cleared`), or when their runs have used up the budget.
//              The budget is short after a first crash, and doubles with every crash in a row.
//   over       Every event starts immediately.
//
// An event becomes a dead letter if it crashed the process `maxCrashes` times while it ran alone: see settling.ts.

/** An event that may have crashed its process. */
export type SuspectJob = Job & {
  /** The number of processes that ended while the event ran alone. */
  readonly crashes: number
}

/** The previous process of the storage, if it did not close the storage. */
export interface Predecessor {
  /** `true` if a process has its id. It may be the previous process, if its lock was released by accident. */
  readonly mayBeAlive: boolean
  /** The number of times in a row that the storage was not closed. */
  readonly crashes: number
}

/**
 * The delay of the events if the previous process may still run, in ms. That process notices meanwhile that it has to
 * stop.
 */
const handoverMs = 750

/** The head start of events that are not suspects, in ms, when a suspect has already made the process crash. */
const headStartMs = 2_000

/** The total time that suspects may keep the others waiting after a first crash, in ms. It doubles with every crash. */
const firstBudgetMs = 1_000
const maxBudgetMs = 32_000

/**
 * Returns a function for the events that a process left. Call it for each event, in order of acceptance. It returns
 * `true` if the event may have been running when that process crashed. Such events are the first due event of each
 * lane, as many as run at a time, and the events with earlier crashes.
 */
export function suspicion(concurrency: number): (job: SuspectJob) => boolean {
  const lanes = new Set<string>()
  return ({ state, lane, crashes }) => {
    if (state !== 'waiting') return false
    const mayHaveRun = lanes.size < concurrency && !lanes.has(lane)
    if (mayHaveRun) lanes.add(lane)
    return mayHaveRun || crashes > 0
  }
}

export interface SuspectsOptions<EachJob extends SuspectJob> {
  readonly concurrency: number
  readonly predecessor: Predecessor
  /** Records the one event that runs alone, or that no event runs alone. */
  readonly recordAlone: (job: EachJob | undefined) => Promise<void>
  /** Called when every event may start. `cleared`: every suspect has been handled. */
  readonly onOver: (cleared: boolean) => void
}

interface Arrival<EachJob extends SuspectJob> {
  readonly job: EachJob
  readonly start: () => void
}

/** The search for the event that crashed the process. */
export class Suspects<EachJob extends SuspectJob> {
  readonly #options: SuspectsOptions<EachJob>
  readonly #isSuspect: (job: EachJob) => boolean
  readonly #left = new Set<EachJob>()
  /** `true` once every event that the previous process left has been considered. */
  #hasAll = false
  /** The jobs that have a slot and wait for their start. */
  #arrivals: Arrival<EachJob>[] = []
  readonly #running = new Set<EachJob>()
  #alone: EachJob | undefined
  #aloneSince = 0
  #budgetMs: number
  #budgetTimer: Timer | undefined
  #headStart: 'ahead' | 'running' | 'over' = 'ahead'
  #state: 'held' | 'searching' | 'over' = 'held'
  #isScheduled = false

  constructor(options: SuspectsOptions<EachJob>) {
    const { concurrency, predecessor } = options
    this.#options = options
    this.#isSuspect = suspicion(concurrency)
    this.#budgetMs = Math.min(firstBudgetMs * 2 ** (predecessor.crashes - 1), maxBudgetMs)
    const begin = () => {
      if (this.#state === 'over') return
      this.#state = 'searching'
      this.#schedule()
    }
    if (predecessor.mayBeAlive) unref(setTimeout(begin, handoverMs))
    else begin()
  }

  /** Call it for each event of the previous process, in order of acceptance, before the event can start. */
  consider(job: EachJob): void {
    if (this.#isSuspect(job)) this.#left.add(job)
  }

  /** Call it once all events have been considered. */
  allConsidered(): void {
    this.#hasAll = true
    this.#schedule()
  }

  /** Resolves when the job may start. */
  enter(job: EachJob): Promise<void> {
    job.state = 'waiting'
    return new Promise((resolve) => {
      const start = () => {
        if (!job.hasEnded) job.state = 'running'
        this.#running.add(job)
        resolve()
      }
      this.#arrivals.push({ job, start })
      this.#schedule()
    })
  }

  /** Call it when an attempt has ended. */
  leave(job: EachJob): void {
    this.#running.delete(job)
    this.#left.delete(job)
    if (this.#alone === job) this.#endAlone()
    this.#schedule()
  }

  /** Ends the search. Waiting jobs never start. */
  stop(): void {
    clearTimeout(this.#budgetTimer)
    this.#state = 'over'
    this.#arrivals = []
  }

  /** Decides at the end of the turn, when the lanes have started their ready jobs. */
  #schedule(): void {
    if (this.#isScheduled) return
    this.#isScheduled = true
    later(() => {
      this.#isScheduled = false
      this.#decide()
    })
  }

  #decide(): void {
    if (this.#state !== 'searching' || this.#alone !== undefined) return
    for (const job of this.#left) if (job.hasEnded) this.#left.delete(job)
    if (this.#left.size === 0 && this.#hasAll) return this.#end(true)
    const haveAllCrashed = [...this.#left].every(({ crashes }) => crashes > 0)
    // Some events are not considered yet, and may have to run before these.
    if (haveAllCrashed && !this.#hasAll) return this.#start(({ job }) => !this.#left.has(job))
    if (haveAllCrashed && this.#goFirst()) return
    if (this.#running.size > 0) return
    const arrived = this.#arrivals.filter(({ job }) => this.#left.has(job))
    // Suspects run in turns, so that a slow event does not count every crash of a crash loop.
    const [next] = arrived.sort((a, b) => a.job.crashes - b.job.crashes)
    if (next !== undefined) this.#startAlone(next)
    // The other events have the slots that the suspects need.
    else this.#start(() => true)
  }

  /** Starts the events that are not suspects, for some time. Returns `true` while there are any. */
  #goFirst(): boolean {
    if (this.#headStart === 'over') return false
    if (this.#headStart === 'ahead') {
      this.#headStart = 'running'
      const end = () => {
        this.#headStart = 'over'
        this.#schedule()
      }
      unref(setTimeout(end, headStartMs))
    }
    this.#start(({ job }) => !this.#left.has(job))
    return this.#running.size > 0
  }

  #start(mayStart: (arrival: Arrival<EachJob>) => boolean): void {
    const arrivals = this.#arrivals
    this.#arrivals = arrivals.filter((arrival) => !mayStart(arrival))
    for (const arrival of arrivals) if (mayStart(arrival)) arrival.start()
  }

  #startAlone({ job }: Arrival<EachJob>): void {
    this.#alone = job
    this.#aloneSince = performance.now()
    this.#budgetTimer = setTimeout(() => this.#spent(), this.#budgetMs)
    const start = () => this.#start((arrival) => arrival.job === job)
    void this.#options.recordAlone(job).then(start)
  }

  #endAlone(): void {
    clearTimeout(this.#budgetTimer)
    this.#budgetMs -= performance.now() - this.#aloneSince
    this.#alone = undefined
    void this.#options.recordAlone(undefined)
  }

  /** Stops the search early, because the other events have waited long enough. */
  #spent(): void {
    void this.#options.recordAlone(undefined).then(() => this.#end(false))
  }

  #end(cleared: boolean): void {
    if (this.#state === 'over') return
    this.#state = 'over'
    this.#start(() => true)
    this.#options.onOver(cleared)
  }
}
