import { LRUCache } from 'lru-cache'
import type { MaybePromise } from '../maybe-promise.ts'
import type { Handle, HandlingResult } from './inbox.ts'
import { Lanes } from './lanes.ts'
import type { Leases } from './leases.ts'
import type { MemoryDeadLetters } from './memory-dead-letters.ts'
import type { Before, MemoryJob } from './memory-job.ts'
import type { MemoryJobs } from './memory-jobs.ts'

/** How many failed events of `handleNow` are remembered. */
const maxFailed = 10_000

export interface HandlingParts {
  readonly jobs: MemoryJobs
  readonly leases: Leases
  readonly deadLetters: MemoryDeadLetters
  readonly concurrency: number
}

/** The way of a claimed event: it waits in its lane, runs, and is recorded, retried, given back or buried. */
export class MemoryHandling {
  readonly #jobs: MemoryJobs
  readonly #leases: Leases
  readonly #deadLetters: MemoryDeadLetters
  readonly #lanes: Lanes<MemoryJob>
  #failed: LRUCache<string, Before> | undefined
  #handle: Handle | undefined

  constructor({ jobs, leases, deadLetters, concurrency }: HandlingParts) {
    this.#jobs = jobs
    this.#leases = leases
    this.#deadLetters = deadLetters
    this.#lanes = new Lanes(concurrency, (job) => this.#run(job))
  }

  get hasStarted(): boolean {
    return this.#handle !== undefined
  }

  get running(): number {
    return this.#lanes.running
  }

  start(handle: Handle): void {
    this.#handle = handle
  }

  /** What `handleNow` could not finish before, so that the sender's retry leaves out the handlers that succeeded. */
  failedBefore(key: string): Before | undefined {
    return this.#failed?.get(key)
  }

  add(job: MemoryJob): void {
    job.state = 'waiting'
    this.#lanes.add(job)
  }

  /** Lets nothing begin any more. */
  clear(): void {
    this.#lanes.clear()
  }

  #run(job: MemoryJob): Promise<void> {
    if (job.hasEnded) return Promise.resolve()
    job.state = 'running'
    const { event, receivedAt } = job.accepted
    return (this.#handle as Handle)(event, receivedAt, job.attempt).then((result) => this.#ran(job, result))
  }

  #ran(job: MemoryJob, result: HandlingResult): MaybePromise<void> {
    // Its lease was lost, or the inbox gave up on it.
    if (job.hasEnded) return
    if (result.status === 'done') return this.#record(job, 'handled')
    if (job.once) return this.#giveBack(job, result.completed)
    if (result.status === 'retry') return this.#retryLater(job, result)
    return this.#bury(job, result)
  }

  #record(job: MemoryJob, result: 'handled' | 'failed'): void {
    job.state = 'recording'
    if (job.once) this.#failed?.delete(job.key)
    this.#leases.complete(job.key, () => this.#jobs.end(job, result))
  }

  async #giveBack(job: MemoryJob, completed: readonly string[]): Promise<void> {
    this.#failed ??= new LRUCache({ max: maxFailed })
    this.#failed.set(job.key, { attempts: job.attempt.number, completed })
    await this.#leases.release(job.key)
    this.#jobs.end(job, 'failed')
  }

  #retryLater(job: MemoryJob, { delayMs, completed }: HandlingResult & { status: 'retry' }): void {
    job.state = 'retrying'
    job.nextAttempt(completed)
    job.retryTimer = setTimeout(() => this.add(job), delayMs)
  }

  #bury(job: MemoryJob, { completed, failures }: HandlingResult & { status: 'dead' }): void {
    const { key, accepted, attempt } = job
    this.#deadLetters.add({ ...accepted, key, attempts: attempt.number, completed, failures, diedAt: new Date() })
    this.#record(job, 'failed')
  }
}
