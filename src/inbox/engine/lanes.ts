import { ChurnMap } from '../../internal/churn-map.ts'
import { inThisRequest, requestsEndWork } from '../../internal/requests.ts'
import { later } from '../../internal/timers.ts'

/** Work that belongs to a lane. */
export interface LaneJob {
  readonly lane: string
  /** The job behind it in its lane; set by the lanes. */
  next: LaneJob | undefined
  /** `true` for a job that has to run in the request that adds it. */
  readonly inItsRequest?: boolean
  /** Starts the job in the request that added it; set by the lanes. */
  startInRequest?: (() => void) | undefined
  /** The time at which the request that added it is over, in ms of `performance.now`. */
  readonly aliveUntil?: number
  /** The number of its current turn; set by the lanes. */
  turn?: number
}

/** The number of jobs that may start before the event loop gets a turn: handlers that never wait must not block it. */
const maxStartsPerTurn = 256

/**
 * Runs jobs after the turn of the event loop in which they were added, so that acknowledgements are written first. The
 * jobs of one lane run one after another, in order; those of different lanes side by side, up to `concurrency`.
 */
export class Lanes<Job extends LaneJob> {
  readonly #concurrency: number
  readonly #run: (job: Job, turn: number) => void
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
  #turns = 0

  /** @param run starts a job. {@link ended} has to be called with the number of its turn once it has ended */
  constructor(concurrency: number, run: (job: Job, turn: number) => void) {
    this.#concurrency = concurrency
    this.#run = run
  }

  get running(): number {
    return this.#running
  }

  add(job: Job): void {
    if (requestsEndWork && job.inItsRequest) job.startInRequest = inThisRequest(() => this.#start(job))
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

  /** Starts what can be started, after this turn of the event loop. */
  schedule(): void {
    // On Workers, the turn that was scheduled may never come, because its request has ended.
    if ((this.#scheduled && !requestsEndWork) || this.#running >= this.#concurrency) return
    this.#scheduled = true
    later(() => {
      this.#scheduled = false
      this.#startsLeft = maxStartsPerTurn
      this.#startReady()
    })
  }

  #startReady(): void {
    while (this.#running < this.#concurrency && this.#startsLeft > 0) {
      const job = this.#ready[this.#started]
      if (job === undefined) break
      this.#started++
      this.#startsLeft--
      this.#running++
      const { startInRequest, aliveUntil = 0 } = job
      if (startInRequest === undefined || aliveUntil <= performance.now()) this.#start(job)
      else startInRequest()
    }
    if (this.#started < this.#ready.length) this.schedule()
    // Started jobs are removed many at a time: removing them one by one would move all the others each time.
    if (this.#started < this.#ready.length && this.#started < 1_024) return
    this.#ready = this.#ready.slice(this.#started)
    this.#started = 0
  }

  /** Ends the turn of a job whose request is over: it will never end. */
  abandon(job: Job): void {
    job.turn = undefined
    this.#end(job)
  }

  #start(job: Job): void {
    job.turn = ++this.#turns
    this.#run(job, job.turn)
  }

  /** Ends a turn of a job, unless it was abandoned. */
  ended(job: Job, turn: number): void {
    if (job.turn === turn) this.#end(job)
  }

  #end(job: Job): void {
    this.#running--
    if (job.next !== undefined) {
      this.#ready.push(job.next as Job)
      // A job that is retried comes back to the end of its lane.
      job.next = undefined
    } else if (this.#last.get(job.lane) === job) {
      this.#last.delete(job.lane)
    }
    if (this.#started === this.#ready.length) return
    if (this.#startsLeft > 0) this.#startReady()
    else this.schedule()
  }
}
