import { ChurnMap } from '../../internal/churn-map.ts'
import { later } from '../../internal/timers.ts'

/** Work that belongs to a lane. */
export interface LaneJob {
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
  /**
   * At most one job of each lane, in the order in which they became ready. The first `#started` of them have started.
   */
  #ready: Job[] = []
  #started = 0
  #running = 0
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

  /** Changes the number of jobs that run at a time. With 0, none starts. Call {@link schedule} after you have raised it. */
  limit(concurrency: number): void {
    this.#concurrency = concurrency
  }

  add(job: Job): void {
    const last = this.#last.get(job.lane)
    this.#last.set(job.lane, job)
    if (last !== undefined) {
      last.next = job
      return
    }
    this.#ready.push(job)
    this.schedule()
  }

  /** Forgets every job that has not started. */
  clear(): void {
    this.#ready = []
    this.#started = 0
    this.#last.clear()
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

  /** Ends the turn of a job, and starts the next one of its lane. */
  ended(job: Job): void {
    this.#running--
    if (job.next !== undefined) {
      this.#ready.push(job.next as Job)
      // A retried job goes to the end of its lane.
      job.next = undefined
    } else if (this.#last.get(job.lane) === job) {
      this.#last.delete(job.lane)
    }
    if (this.#started === this.#ready.length) return
    if (this.#startsLeft > 0) this.#startReady()
    else this.schedule()
  }
}
