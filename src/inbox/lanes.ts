/** Work that belongs to a lane. */
export interface LaneJob {
  readonly lane: string
}

// setImmediate where the runtime has it: a timer would cost a millisecond.
const later: (run: () => void) => void = globalThis.setImmediate ?? ((run: () => void) => setTimeout(run, 0))

/** How many jobs may begin before the event loop gets a turn: handlers that never wait must not hold up deliveries. */
const maxStartsPerTurn = 256

/**
 * Runs jobs after the turn of the event loop in which they were added, so that acknowledgements are written first:
 * those of one lane one after another, in order; those of different lanes side by side, up to `concurrency`.
 */
export class Lanes<Job extends LaneJob> {
  readonly #concurrency: number
  readonly #run: (job: Job) => Promise<void>
  /** The jobs behind the one of their lane that is ready or running. */
  readonly #behind = new Map<string, Job[]>()
  /** At most one job a lane, in the order in which they became ready. */
  #ready: Job[] = []
  #running = 0
  #startsLeft = 0
  #scheduled = false

  /** @param run never rejects */
  constructor(concurrency: number, run: (job: Job) => Promise<void>) {
    this.#concurrency = concurrency
    this.#run = run
  }

  get running(): number {
    return this.#running
  }

  add(job: Job): void {
    const behind = this.#behind.get(job.lane)
    if (behind !== undefined) {
      behind.push(job)
      return
    }
    this.#behind.set(job.lane, [])
    this.#ready.push(job)
    this.#schedule()
  }

  /** Forgets every job that has not begun. */
  clear(): void {
    this.#ready = []
    this.#behind.clear()
  }

  #schedule(): void {
    if (this.#scheduled || this.#running >= this.#concurrency) return
    this.#scheduled = true
    later(() => {
      this.#scheduled = false
      this.#startsLeft = maxStartsPerTurn
      this.#begin()
    })
  }

  #begin(): void {
    const starts = Math.min(this.#concurrency - this.#running, this.#startsLeft)
    this.#startsLeft -= starts
    for (const job of this.#ready.splice(0, starts)) {
      this.#running++
      void this.#run(job).then(() => this.#end(job))
    }
  }

  #end(job: Job): void {
    this.#running--
    const behind = this.#behind.get(job.lane)
    const next = behind?.shift()
    if (next !== undefined) this.#ready.push(next)
    else this.#behind.delete(job.lane)
    if (this.#ready.length === 0) return
    if (this.#startsLeft > 0) this.#begin()
    else this.#schedule()
  }
}
