import type { AcceptedEvent, Attempt } from '../inbox.ts'
import { type EarlierAttempts, Job } from '../shared/jobs.ts'
import { reviveEvent } from '../shared/stored.ts'

/** The columns of a claimed event that Postgres returns, as one JSON text: the parsers of the pool can be the user's. */
export const claimedColumns = `json_build_object(
  'id', id::text, 'event', event, 'receivedAt', extract(epoch FROM received_at) * 1000,
  'attempts', attempts, 'completed', completed, 'crashes', crashes
)::text AS claimed`

interface ClaimedEvent extends EarlierAttempts {
  readonly id: string
  readonly event: AcceptedEvent['event']
  readonly receivedAt: number
  readonly crashes: number
}

/** An event that this process has claimed. */
export class PostgresJob extends Job {
  /** The row that holds it. */
  readonly id: string
  /** The owner that claimed it. */
  readonly owner: string
  /** The number of processes that ended while they may have been handling it. */
  readonly crashes: number
  readonly transaction: Attempt['transaction']

  constructor(claimed: string, owner: string, transact: (job: PostgresJob) => Attempt['transaction']) {
    const { id, event, receivedAt, crashes, ...earlier } = JSON.parse(claimed) as ClaimedEvent
    super({ event: reviveEvent(event), receivedAt: new Date(Math.round(receivedAt)) }, earlier)
    this.id = id
    this.owner = owner
    this.crashes = crashes
    this.transaction = transact(this)
  }
}
