import type { MaybePromise } from '../../internal/maybe-promise.ts'
import { Job, type JobAttempt } from '../engine/job.ts'
import { Jobs } from '../engine/jobs.ts'
import type { OwingEvent } from '../engine/owed-handlers.ts'
import type { Attempt, TransactionScope } from '../inbox.ts'
import type { ClaimedEvent, EventId, HeldEvent } from './event.ts'

/** Maximum number of attempts a process publishes, longest first. */
const maxPublished = 100

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
  readonly crashes: number
  readonly owed: readonly string[] | undefined
  readonly #store: JobStore

  constructor({ id, crashes, owed, accepted, size, ...earlier }: ClaimedEvent, store: JobStore) {
    super(accepted, earlier, false, size)
    this.id = id
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

export class SqlJobs extends Jobs<SqlJob> {
  started(): ReadonlyMap<EventId, SqlJob['running']> {
    return new Map(this.#running().map((job) => [job.id, job.running]))
  }

  /** Start times (ms since the epoch) of attempts running for more than `ms`. `undefined` if there are none. */
  longRunning(ms: number): Readonly<Record<string, number>> | undefined {
    const before = Date.now() - ms
    const long = this.#running().filter(({ since }) => since <= before)
    if (long.length === 0) return undefined
    const longest = long.sort((a, b) => a.since - b.since).slice(0, maxPublished)
    return Object.fromEntries(longest.map(({ id, since }) => [id, since]))
  }

  #running(): SqlJob[] {
    return [...this].filter(({ shownState }) => shownState === 'running')
  }

  ofId(id: string): SqlJob | undefined {
    return [...this].find((job) => `${job.id}` === id)
  }

  held(): readonly HeldEvent[] {
    return Array.from(this, ({ id, releases }) => ({ id, releases }))
  }

  ofEachMedia(): Map<string, number> {
    const counts = new Map<string, number>()
    for (const { lane } of this) counts.set(lane, (counts.get(lane) ?? 0) + 1)
    return counts
  }
}
