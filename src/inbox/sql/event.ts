import type { EarlierAttempts } from '../engine/job.ts'
import type { AcceptedEvent } from '../inbox.ts'

/** The id of an event's row, a number or its decimal text. */
export type EventId = string | number

/** An event that this process holds. */
export interface HeldEvent {
  readonly id: EventId
  /** The fence: the number of its releases when it was claimed. Once another process could have it, the row has a higher one. */
  readonly releases: number
}

/** A claimed event. */
export interface ClaimedEvent extends HeldEvent, EarlierAttempts {
  readonly accepted: AcceptedEvent
  readonly crashes: number
  /** Names of the handlers it owes. Absent in a database of one process, and if it had none when it was parsed again. */
  readonly owed?: readonly string[] | undefined
  /** Its memory (bytes, about). */
  readonly size: number
}
