import { ChurnMap } from '../../internal/churn-map.ts'
import { later } from '../../internal/timers.ts'

/** Work that belongs to a lane. */
export interface LaneJob {
  readonly key: string
  readonly lane: string
  /** The job behind it in its lane; set by the lanes. */
  next: LaneJob | undefined
}

/** The number of jobs that may start before the event loop gets a turn. Synchronous handlers must not block it. */
const maxStartsPerTurn = 256

/**
 * Starts jobs after the turn of the event loop in which they were added, so that acknowledgements are written first.
 * The jobs of one lane run one after another, in order. Jobs of different lanes run side by side, up to `concurrency`.
 */
export class Lanes<Job extends LaneJob> {
  #concurrency: number
  readonly #start: (job: Job) => void
  /** The last job of each lane that has any. */
  readonly #last = new ChurnMap<string, Job>()
  /** Blocked lanes: the key of the job that each waits for, and the first job behind it. Lazy. */
  #held: Map<string, { readonly key: string; first: Job | undefined }> | undefined
  /**
   * At most one job of each lane, in the order in which they became ready. The first `#started` of them have started.
   */
  #ready: Job[] = []
  #started = 0
  #running = 0
  readonly #parked = new Set<Job>()
  #startsLeft = 0
  #scheduled = false

  /** @param start starts a job. Call {@link ended} once the job has ended */
  constructor(concurrency: number, start: (job: Job) => void) {
    this.#concurrency = concurrency
    this.#start = start
  }

  get running(): number {
    return this.#running
  }

  /** The started jobs without a slot. */
  get parked(): ReadonlySet<Job> {
    return this.#parked
  }

  /** Changes the number of jobs that run at a time. With 0, none starts. Call {@link schedule} after you have raised it. */
  limit(concurrency: number): void {
    this.#concurrency = concurrency
  }

  add(job: Job): void {
    const held = this.#held?.get(job.lane)
    if (held?.key === job.key) return this.#unblock(job, held.first)
    const last = this.#last.get(job.lane)
    this.#last.set(job.lane, job)
    if (last !== undefined) last.next = job
    else if (held !== undefined) held.first = job
    else this.#makeReady(job)
  }

  /** Unblocks a lane with the job that it waited for. */
  #unblock(job: Job, first: Job | undefined): void {
    this.#held?.delete(job.lane)
    job.next = first
    if (first === undefined) this.#last.set(job.lane, job)
    this.#makeReady(job)
  }

  #makeReady(job: Job): void {
    this.#ready.push(job)
    this.schedule()
  }

  /** Blocks a lane until the job with that key is added, which then goes first. */
  hold(lane: string, key: string): void {
    this.#held ??= new Map()
    if (!this.#held.has(lane)) this.#held.set(lane, { key, first: undefined })
  }

  /** Removes the jobs behind a running one, and returns them. */
  removeBehind(job: Job): readonly Job[] {
    const behind: Job[] = []
    for (let { next } = job; next !== undefined; next = next.next) behind.push(next as Job)
    job.next = undefined
    this.#last.set(job.lane, job)
    return behind
  }

  /** Forgets every job that has not started. */
  clear(): void {
    this.#ready = []
    this.#started = 0
    this.#last.clear()
    this.#held = undefined
  }

  /** Starts all ready jobs that have a slot, after this turn of the event loop. */
  schedule(): void {
    if (this.#scheduled || this.#running >= this.#concurrency) return
    later(() => {
      this.#scheduled = false
      this.#startsLeft = maxStartsPerTurn
      this.#startReady()
    })
    this.#scheduled = true
  }

  #startReady(): void {
    while (this.#running < this.#concurrency && this.#startsLeft > 0) {
      const job = this.#ready[this.#started]
      if (job === undefined) break
      this.#started++
      this.#startsLeft--
      this.#running++
      this.#start(job)
    }
    if (this.#started < this.#ready.length) this.schedule()
    // Started jobs are removed many at a time. To remove them one by one would move all the others each time.
    if (this.#started < this.#ready.length && this.#started < 1_024) return
    this.#ready = this.#ready.slice(this.#started)
    this.#started = 0
  }

  /** Gives the slot of a running job to the next one. Its lane waits on. */
  park(job: Job): void {
    this.#parked.add(job)
    this.#running--
    if (this.#started < this.#ready.length) this.schedule()
  }

  /** Starts a parked job again, after the next one: its turn has come already, but the slots are for the others too. */
  unpark(job: Job): void {
    if (!this.#parked.delete(job)) return
    this.#ready.splice(this.#started + 1, 0, job)
    this.schedule()
  }

  /** Ends the turn of a job, and starts the next one of its lane. */
  ended(job: Job): void {
    this.#running--
    const next = job.next as Job | undefined
    // A retried job goes to the end of its lane.
    job.next = undefined
    const held = this.#held?.get(job.lane)
    if (held !== undefined) held.first = next
    else if (next !== undefined) this.#ready.push(next)
    if (next === undefined && this.#last.get(job.lane) === job) this.#last.delete(job.lane)
    if (this.#started === this.#ready.length) return
    if (this.#startsLeft > 0) this.#startReady()
    else this.schedule()
  }
}
