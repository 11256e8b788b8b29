import { LRUCache } from 'lru-cache'
import type { Dead, Ledger } from '../shared/handling.ts'
import type { Before, Job } from '../shared/job.ts'
import type { Leases } from '../shared/leases.ts'
import type { MemoryDeadLetters } from './dead-letters.ts'

/** How many failed events of `handleNow` are remembered. */
const maxFailed = 10_000

/** Completes what is handled in the store, and gives back what `handleNow` could not handle. */
export class MemoryLedger implements Ledger {
  readonly #leases: Leases
  readonly #deadLetters: MemoryDeadLetters
  #failed: LRUCache<string, Before> | undefined

  constructor(leases: Leases, deadLetters: MemoryDeadLetters) {
    this.#leases = leases
    this.#deadLetters = deadLetters
  }

  /** What `handleNow` could not finish before, so that the sender's retry leaves out the handlers that succeeded. */
  failedBefore(key: string): Before | undefined {
    return this.#failed?.get(key)
  }

  complete(job: Job, recorded: () => void): void {
    if (job.once) this.#failed?.delete(job.key)
    this.#leases.complete(job.key, recorded)
  }

  bury({ key, accepted, attempt }: Job, { completed, failures }: Dead, recorded: () => void): void {
    this.#deadLetters.add({ ...accepted, key, attempts: attempt.number, completed, failures, diedAt: new Date() })
    this.#leases.complete(key, recorded)
  }

  giveBack({ key, attempt }: Job, completed: readonly string[], recorded: () => void): void {
    this.#failed ??= new LRUCache({ max: maxFailed })
    this.#failed.set(key, { attempts: attempt.number, completed })
    void this.#leases.release(key).then(recorded)
  }
}
