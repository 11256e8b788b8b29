import { Job, type JobAttempt } from '../engine/job.ts'
import type { OwingEvent } from '../engine/owed-handlers.ts'
import type { Attempt } from '../inbox.ts'
import type { ClaimedEvent, EventId, EventStore, HeldEvent } from './store.ts'

/** An event that this process holds. */
export class SqlJob extends Job implements HeldEvent, OwingEvent {
  readonly id: EventId
  override readonly releases: number
  readonly crashes: number
  readonly owed: readonly string[] | undefined
  readonly #store: Pick<EventStore, 'holds' | 'transact'>

  constructor({ id, releases, crashes, owed, accepted, size, ...earlier }: ClaimedEvent, store: Pick<EventStore, 'holds' | 'transact'>) {
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

  /** It may have crashed a process. */
  get isSuspect(): boolean {
    return this.crashes > 0
  }

  override transactionOf(attempt: JobAttempt<this>): Attempt['transaction'] {
    return (scope, run) => this.#store.transact(attempt, scope, run)
  }
}
