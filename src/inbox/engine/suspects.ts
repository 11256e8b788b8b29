import { later, type Timer, unref } from '../../internal/timers.ts'
import type { Job } from './job.ts'

// Finds the event that makes a process crash, so that it cannot keep the others from being handled. What is stored of an
// event is the number of crashes while it ran alone; of the process, the number of crashes in a row. The search:
//
//   held       The process before may still run, and notices soon that it has to stop. No event starts.
//              -> searching, after `handoverMs`, or at once if that process is dead.
//   searching  Every event asks before it starts. Those that may have been running during the crash are suspects.
//              - A suspect starts alone: nothing else runs, and its name is recorded first. If the process crashes now,
//                it is that event. When it has ended, it is no suspect any more.
//              - Suspects that have crashed the previous process come after the others, in turns. While only such suspects
//                are left, the events that are not suspected have a head start of `headStartMs`.
//              - Other events wait while a suspect runs, or can run.
//              -> over, when no suspect is left (`cleared`), or when suspects have run for as long as the budget allows.
//              The budget is short after a first crash, and doubles with every crash in a row.
//   over       Every event starts at once.
//
// An event that has crashed the process `maxCrashes` times alone becomes a dead letter: see crash-limit.ts.

/** An event that may have crashed its process. */
export type SuspectJob = Job & {
  /** The number of processes that have ended while the event ran alone. */
  readonly crashes: number
}

/** The process that had the storage before, if it did not close it. */
export interface Predecessor {
  /** `true` if a process has its id. It may be that process, whose lock was released by accident. */
  readonly mayBeAlive: boolean
  /** The number of times in a row that the storage was not closed. */
  readonly crashes: number
}

/** The delay of the events where the previous process may still run, in ms: it notices meanwhile that it has to stop. */
const handoverMs = 750

/** The head start of events that are not suspected, in ms, when a suspect has already made the process crash. */
const headStartMs = 2_000

/** The total time that suspects may keep the others waiting after a first crash, in ms. It doubles with every crash. */
const firstBudgetMs = 1_000
const maxBudgetMs = 32_000

/**
 * Returns a function that is asked about each event that a process left, in order of acceptance. It says whether the event
 * was running when that process crashed, or may have been: the first of each lane that was due, as many as run at a time,
 * and those that are under suspicion already.
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
  /** Records the one event that is being handled, or that there is none such. */
  readonly recordAlone: (job: EachJob | undefined) => Promise<void>
  /** Called when every event may start. `cleared`: every suspect has been handled. */
  readonly onOver: (cleared: boolean) => void
}

interface Arrival<EachJob extends SuspectJob> {
  readonly job: EachJob
  readonly start: () => void
}

/** The search for the event that made the process crash. */
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

  /** Has to be called for each event that the previous process left, before it can start, in order of acceptance. */
  consider(job: EachJob): void {
    if (this.#isSuspect(job)) this.#left.add(job)
  }

  /** Has to be called once all have been considered. */
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

  /** Has to be called when an attempt has ended. */
  leave(job: EachJob): void {
    this.#running.delete(job)
    this.#left.delete(job)
    if (this.#alone === job) this.#endAlone()
    this.#schedule()
  }

  /** Ends the search. Those that wait never start. */
  stop(): void {
    clearTimeout(this.#budgetTimer)
    this.#state = 'over'
    this.#arrivals = []
  }

  /** Decides at the end of the turn, when the lanes have started what they can. */
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
    // Those that are still to be considered may have to run before these.
    if (haveAllCrashed && !this.#hasAll) return this.#start(({ job }) => !this.#left.has(job))
    if (haveAllCrashed && this.#goFirst()) return
    if (this.#running.size > 0) return
    const arrived = this.#arrivals.filter(({ job }) => this.#left.has(job))
    // In turns: an event that is only slow does not count every crash of a loop.
    const [next] = arrived.sort((a, b) => a.job.crashes - b.job.crashes)
    if (next !== undefined) this.#startAlone(next)
    // The others have the slots that the suspects need.
    else this.#start(() => true)
  }

  /** Lets the events start that are not suspected, for some time. Returns `true` while there are any. */
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

  /** Ends the search before its end: the others have waited long enough. */
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
