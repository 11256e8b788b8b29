import type { MaybePromise } from '../../internal/maybe-promise.ts'
import { Job, type JobAttempt } from '../engine/job.ts'
import type { OwingEvent } from '../engine/owed-handlers.ts'
import type { Attempt, TransactionScope } from '../inbox.ts'
import type { ClaimedEvent, EventId, HeldEvent } from './event.ts'

export interface JobStore {
  /** False once the lease is over: nothing may start. Called for every attempt, so keep it cheap. */
  readonly holds: boolean
  /**
   * Runs a handler's function in a transaction that also records the handler as completed. Once `scope.signal` aborts,
   * it must roll back and reject with the signal's reason, even if the function never settles.
   */
  transact<Result>(
    attempt: JobAttempt<SqlJob>,
    scope: TransactionScope,
    run: (client: never) => MaybePromise<Result>,
  ): Promise<Result>
}

export class SqlJob extends Job implements HeldEvent, OwingEvent {
  readonly id: EventId
  override readonly releases: number
  readonly crashes: number
  readonly owed: readonly string[] | undefined
  readonly #store: JobStore

  constructor({ id, releases, crashes, owed, accepted, size, ...earlier }: ClaimedEvent, store: JobStore) {
    super(accepted, earlier, false, size)
    this.id = id
    this.releases = releases
    this.crashes = crashes
    this.owed = owed
    this.#store = store
  }

  override get isOver(): boolean {
    return !this.#store.holds
  }

  override get owesNothing(): boolean {
    return this.owed?.length === 0
  }

  /** True if it may have crashed a process. */
  get isSuspect(): boolean {
    return this.crashes > 0
  }

  override transactionOf(attempt: JobAttempt<this>): Attempt['transaction'] {
    return (scope, run) => this.#store.transact(attempt, scope, run)
  }
}
