import { LRUCache } from 'lru-cache'
import type { Claims } from '../../idempotency/store.ts'
import { withoutStack } from '../engine/stored.ts'
import type { AttemptResult } from '../inbox.ts'
import type { MemoryDeadLetters } from './dead-letters.ts'
import type { EarlierAttempts, Job, JobEnd } from './job.ts'
import type { Jobs } from './jobs.ts'

/** Failed `handleNow` events that are remembered. */
const maxFailed = 10_000

/** Ends jobs: completes their keys in the store, and releases those that failed in `handleNow`. */
export class MemorySettling {
  readonly #jobs: Jobs
  readonly #claims: Claims
  readonly #deadLetters: MemoryDeadLetters
  #failed: LRUCache<string, EarlierAttempts> | undefined

  constructor(jobs: Jobs, claims: Claims, deadLetters: MemoryDeadLetters) {
    this.#jobs = jobs
    this.#claims = claims
    this.#deadLetters = deadLetters
  }

  /** Returns earlier attempts at a failed `handleNow` event: the sender's retry skips the handlers that succeeded. */
  earlierAttempts(key: string): EarlierAttempts | undefined {
    return this.#failed?.get(key)
  }

  /** Records the result of a job's last attempt, then ends the job. */
  settle(job: Job, result: AttemptResult): void {
    const { key, number: attempts } = job
    const end = (end: JobEnd) => () => this.#jobs.end(job, end)
    job.record()
    if (result.status === 'done') {
      this.#failed?.delete(key)
      return this.#claims.complete(key, end('handled'))
    }
    const { completed, failures } = result
    if (job.once) {
      this.#failed ??= new LRUCache({ max: maxFailed })
      this.#failed.set(key, { attempts, completed })
      return void this.#claims.release(key).then(end('failed'))
    }
    const failedAttempts = job.failedWith(failures)
    const last = { failures: failures.map(withoutStack), failedAttempts, diedAt: new Date() }
    this.#deadLetters.add({ ...job.accepted, key, attempts, completed, ...last })
    this.#claims.complete(key, end('dead-lettered'))
  }
}
