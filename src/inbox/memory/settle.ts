import { LRUCache } from 'lru-cache'
import type { Claims } from '../../idempotency/store.ts'
import type { EarlierAttempts, Job, JobAttempt } from '../engine/job.ts'
import type { DeadResult, Settling } from '../engine/settling.ts'
import { withoutStack } from '../engine/stored.ts'
import type { MemoryDeadLetters } from './dead-letters.ts'

/** Failed `handleNow` events that are remembered. */
const maxFailed = 10_000

/** Completes handled events in the store, and releases those that failed in `handleNow`. */
export class MemorySettling implements Settling {
  readonly retries = 'here'
  /** Absent if claims have no leases. */
  readonly begin: ((attempt: JobAttempt<Job>) => Promise<undefined> | undefined) | undefined
  readonly #claims: Claims
  readonly #deadLetters: MemoryDeadLetters
  #failed: LRUCache<string, EarlierAttempts> | undefined

  constructor(claims: Claims, deadLetters: MemoryDeadLetters) {
    this.#claims = claims
    this.begin = claims.renewed && (({ job }) => claims.renewed?.(job.key))
    this.#deadLetters = deadLetters
  }

  /** Returns earlier attempts at a failed `handleNow` event: the sender's retry skips the handlers that succeeded. */
  earlierAttempts(key: string): EarlierAttempts | undefined {
    return this.#failed?.get(key)
  }

  complete({ job: { key } }: JobAttempt<Job>, recorded: () => void): void {
    this.#failed?.delete(key)
    this.#claims.complete(key, recorded)
  }

  deadLetter(job: Job, { completed, failures }: DeadResult, recorded: () => void): void {
    const { key, accepted, number: attempts } = job
    const failedAttempts = job.failedWith(failures)
    const last = { failures: failures.map(withoutStack), failedAttempts, diedAt: new Date() }
    this.#deadLetters.add({ ...accepted, key, attempts, completed, ...last })
    this.#claims.complete(key, recorded)
  }

  /** Nothing to record: the job itself is the record. */
  retry(): void {}

  release({ key, number }: Job, completed: readonly string[], recorded: () => void): void {
    this.#failed ??= new LRUCache({ max: maxFailed })
    this.#failed.set(key, { attempts: number, completed })
    void this.#claims.release(key).then(recorded)
  }
}
