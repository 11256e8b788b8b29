import { type EarlierAttempts, Job } from '../engine/job.ts'
import type { OwingEvent } from '../engine/owed-handlers.ts'
import { reviveEvent, reviveFailedAttempts } from '../engine/stored.ts'
import type { AcceptedEvent, Attempt } from '../inbox.ts'
import type { FailedAttempt, TraceCarrier } from '../reading.ts'

/** The returned columns of a claimed event, as one JSON text, because the pool's parsers can be the user's. */
export const claimedColumns = `json_build_object(
  'id', id::text, 'event', event, 'receivedAt', extract(epoch FROM received_at) * 1000,
  'attempts', attempts, 'completed', completed, 'crashes', crashes, 'trace', trace, 'failedAttempts', failed,
  'owed', owed, 'releases', releases
)::text AS claimed`

interface ClaimedEvent extends Omit<EarlierAttempts, 'failedAttempts'> {
  readonly id: string
  readonly event: AcceptedEvent['event']
  readonly receivedAt: number
  readonly crashes: number
  readonly releases: number
  readonly trace: TraceCarrier | null
  readonly failedAttempts: readonly FailedAttempt[] | null
  readonly owed: readonly string[] | null
}

/** The lease of a process on all of its events. */
interface ProcessLease {
  readonly id: string
  readonly isOver: boolean
}

/** An event that this process has claimed. */
export class PostgresJob extends Job implements OwingEvent {
  /** The event's row. */
  readonly id: string
  /** The owner of the claim. */
  readonly owner: string
  /** The number of its releases when it was claimed. After the next one, this process no longer has it. */
  override readonly releases: number
  /** The number of processes that may have been handling it when they ended. */
  readonly crashes: number
  readonly owed: readonly string[] | undefined
  readonly #lease: ProcessLease
  readonly #transact: (job: PostgresJob) => Attempt['transaction']

  constructor(claimed: string, lease: ProcessLease, transact: (job: PostgresJob) => Attempt['transaction']) {
    const { id, event, receivedAt, crashes, releases, trace, failedAttempts, owed, ...earlier } = JSON.parse(
      claimed,
    ) as ClaimedEvent
    super(
      { event: reviveEvent(event), receivedAt: new Date(Math.round(receivedAt)), ...(trace !== null && { trace }) },
      { ...earlier, failedAttempts: reviveFailedAttempts(failedAttempts ?? []) },
      false,
      claimed.length,
    )
    this.id = id
    this.owner = lease.id
    this.#lease = lease
    this.releases = releases
    this.crashes = crashes
    this.owed = owed ?? undefined
    this.#transact = transact
  }

  override get isOver(): boolean {
    return this.#lease.isOver
  }

  override get owesNothing(): boolean {
    return this.owed?.length === 0
  }

  override transactionOf(): Attempt['transaction'] {
    return this.#transact(this)
  }
}
