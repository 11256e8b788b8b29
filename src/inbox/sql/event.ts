import type { EarlierAttempts } from '../engine/job.ts'
import type { AcceptedEvent } from '../inbox.ts'

/** Row id of an event, as a number or its decimal text. */
export type EventId = string | number

export interface HeldEvent {
  readonly id: EventId
  /** Fence: release count when claimed. The row's is higher once another process could have the event. */
  readonly releases: number
}

export interface ClaimedEvent extends HeldEvent, Omit<EarlierAttempts, 'releases'> {
  readonly accepted: AcceptedEvent
  readonly crashes: number
  /** Owed handlers. Absent in a database of one process, and for an event parsed again without any. */
  readonly owed?: readonly string[] | undefined
  /** Memory (bytes, about). */
  readonly size: number
}
