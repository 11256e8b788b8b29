import { LRUCache } from 'lru-cache'
import type { Claims } from '../../idempotency/store.ts'
import { requestsEndWork } from '../../internal/requests.ts'
import type { DeadResult, Ledger } from '../engine/engine.ts'
import type { EarlierAttempts, Job } from '../engine/jobs.ts'
import type { MemoryDeadLetters } from './dead-letters.ts'

/** The number of failed events of `handleNow` that are remembered. */
const maxFailed = 10_000

/** Completes handled events in the store, and gives back those that `handleNow` could not handle. */
export class MemoryLedger implements Ledger {
  /** Absent where claims have no leases. */
  readonly start: ((job: Job) => Promise<undefined> | undefined) | undefined
  readonly #claims: Claims
  readonly #deadLetters: MemoryDeadLetters
  #failed: LRUCache<string, EarlierAttempts> | undefined

  constructor(claims: Claims, deadLetters: MemoryDeadLetters) {
    this.#claims = claims
    this.start = claims.renewed && (({ key }) => claims.renewed?.(key))
    this.#deadLetters = deadLetters
  }

  /** Returns the earlier attempts of `handleNow`, so that the sender's retry skips the handlers that succeeded. */
  earlierAttempts(key: string): EarlierAttempts | undefined {
    return this.#failed?.get(key)
  }

  complete(job: Job, recorded: () => void): void {
    this.#failed?.delete(job.key)
    this.#claims.complete(job.key, recorded)
  }

  deadLetter(job: Job, { completed, failures }: DeadResult, recorded: () => void): void {
    const { key, accepted, number: attempts } = job
    const failedAttempts = job.failedWith(failures)
    this.#deadLetters.add({ ...accepted, key, attempts, completed, failures, failedAttempts, diedAt: new Date() })
    this.#claims.complete(key, recorded)
  }

  release({ key, number }: Job, completed: readonly string[], recorded: () => void): void {
    this.#failed ??= new LRUCache({ max: maxFailed })
    this.#failed.set(key, { attempts: number, completed })
    const released = this.#claims.release(key)
    // On Workers the request may end before the store answers, and the lease runs out by itself.
    if (requestsEndWork) recorded()
    else void released.then(recorded)
  }
}
