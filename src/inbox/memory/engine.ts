import { ChurnMap } from '../../internal/churn-map.ts'
import type { RetryResult } from '../engine/attempts.ts'
import type { AttemptResult } from '../inbox.ts'
import { Lanes } from '../lanes.ts'
import type { Job, Slots } from './job.ts'

/** The result of a job's last attempt. */
export type LastResult = Exclude<AttemptResult, RetryResult>

/** What the engine does with a job. */
export interface JobWork {
  /** Makes an attempt. Never rejects. */
  attempt(job: Job): Promise<AttemptResult>
  /** Ends a job with the result of its last attempt. */
  settle(job: Job, result: LastResult): void
}

/**
 * Runs the events of an inbox in memory: those of a media item one by one, in order, and media items side by side. A job
 * waits in its lane for a slot, and runs while an attempt is made. A failed one is retried after a delay: in loose order
 * at the end of its lane, in strict order as its first, which the others wait for.
 */
export class MemoryEngine implements Slots {
  readonly #work: JobWork
  readonly #isStrict: boolean
  /** A lane is known by its first job. */
  readonly #lanes: Lanes<Job>
  /** The last job of each lane. */
  readonly #last = new ChurnMap<string, Job>()

  constructor(work: JobWork, isStrict: boolean, concurrency: number) {
    this.#work = work
    this.#isStrict = isStrict
    this.#lanes = new Lanes(concurrency, (job) => this.#start(job))
  }

  get running(): number {
    return this.#lanes.running
  }

  /** Adds a job at the end of its lane. */
  add(job: Job): void {
    const last = this.#last.get(job.lane)
    this.#last.set(job.lane, job)
    if (last === undefined) this.#lanes.add(job)
    else last.next = job
  }

  /** Starts a job's next attempt now. Returns `false` if the job is not waiting for one. */
  retryNow(job: Job | undefined): boolean {
    if (job?.state !== 'retrying') return false
    job.since = Date.now()
    this.#due(job)
    return true
  }

  #due(job: Job): void {
    job.wait()
    if (this.#isStrict) this.#lanes.add(job)
    else this.add(job)
  }

  /** Goes on with the lane of a job that is about to end while it waits for its retry. */
  lost(job: Job): void {
    if (this.#isStrict && job.state === 'retrying') this.#readyNext(job)
  }

  /** Starts no more attempts. */
  stop(): void {
    this.#lanes.clear()
    this.#last.clear()
  }

  #start(job: Job): void {
    if (job.hasEnded) return this.#ended(job)
    void this.#work.attempt(job).then((result) => this.#finished(job, result))
  }

  #finished(job: Job, result: AttemptResult): void {
    if (job.hasEnded) return this.#ended(job)
    if (result.status === 'retry') {
      job.retry(result, () => this.#due(job))
      if (this.#isStrict) return this.#lanes.done()
    } else this.#work.settle(job, result)
    this.#ended(job)
  }

  /** Ends a job's turn. */
  #ended(job: Job): void {
    this.#readyNext(job)
    this.#lanes.done()
  }

  #readyNext(job: Job): void {
    const { next } = job
    job.next = undefined
    if (next !== undefined) this.#lanes.add(next)
    else if (this.#last.get(job.lane) === job) this.#last.delete(job.lane)
  }

  /** Frees the slot of a running job while it waits. Its lane stays blocked. */
  async whileWaiting(job: Job, turn: Promise<void>): Promise<void> {
    job.limit()
    await this.#lanes.whileWaiting(job, turn)
    if (!job.hasEnded) job.goOn()
  }
}
