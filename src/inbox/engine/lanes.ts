import { ChurnMap } from '../../internal/churn-map.ts'
import { later } from '../../internal/timers.ts'

export interface LaneJob {
  readonly key: string
  readonly lane: string
  /** The job behind it, set by the lanes. */
  next: LaneJob | undefined
}

/** Starts per event-loop turn, so synchronous handlers don't block the loop. */
const maxStartsPerTurn = 256

/**
 * Runs each lane's jobs one by one, in order, and lanes side by side up to `concurrency`. Starts jobs after the
 * event-loop turn that added them, so acknowledgements are written first.
 */
export class Lanes<Job extends LaneJob> {
  #concurrency: number
  readonly #start: (job: Job) => void
  /** The last job of each busy lane. */
  readonly #last = new ChurnMap<string, Job>()
  /** Blocked lanes: the key each waits for, and the first job behind it. Lazy. */
  #held: Map<string, { readonly key: string; first: Job | undefined }> | undefined
  /** At most one job per lane, in the order they became ready. The first `#started` have started. */
  #ready: Job[] = []
  #started = 0
  #running = 0
  readonly #parked = new Set<Job>()
  #startsLeft = 0
  #scheduled = false

  /** @param start starts a job. Call {@link ended} when it is done */
  constructor(concurrency: number, start: (job: Job) => void) {
    this.#concurrency = concurrency
    this.#start = start
  }

  get running(): number {
    return this.#running
  }

  /** Started jobs without a slot. */
  get parked(): ReadonlySet<Job> {
    return this.#parked
  }

  /** Changes the concurrency; 0 starts nothing. After raising it, call {@link schedule}. */
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

  /** Unblocks a lane whose job will not be added. */
  release(lane: string, key: string): void {
    const held = this.#held?.get(lane)
    if (held?.key !== key) return
    this.#held?.delete(lane)
    if (held.first !== undefined) this.#makeReady(held.first)
  }

  removeBehind(job: Job): readonly Job[] {
    const behind: Job[] = []
    for (let { next } = job; next !== undefined; next = next.next) behind.push(next as Job)
    job.next = undefined
    this.#last.set(job.lane, job)
    return behind
  }

  clear(): void {
    this.#ready = []
    this.#started = 0
    this.#last.clear()
    this.#held = undefined
  }

  /** Starts the ready jobs, up to the free slots, after this event-loop turn. */
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
    // Started jobs are dropped in bulk: a shift per job would be quadratic.
    if (this.#started < this.#ready.length && this.#started < 1_024) return
    this.#ready = this.#ready.slice(this.#started)
    this.#started = 0
  }

  /** Frees the slot of a running job. Its lane stays blocked. */
  park(job: Job): void {
    this.#parked.add(job)
    this.#running--
    if (this.#started < this.#ready.length) this.schedule()
  }

  /** Queues a parked job for a slot, right behind the next job: its turn had come, but others must not starve. */
  unpark(job: Job): void {
    if (!this.#parked.delete(job)) return
    this.#ready.splice(this.#started + 1, 0, job)
    this.schedule()
  }

  /** Ends a job's turn and readies the next job of its lane. */
  ended(job: Job): void {
    this.#running--
    const next = job.next as Job | undefined
    // A retried job joins the end of its lane.
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
