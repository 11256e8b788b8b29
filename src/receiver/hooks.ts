import type { AttemptReport, RunReport } from '../handlers/reports.ts'
import type { DeliveryOutcome } from './acknowledgement.ts'

/** The report of one delivery. It never contains the body, the title, a secret or the URL's query. */
export interface DeliveryReport {
  /** A success such as `accepted`, or the code of the rejection. */
  readonly outcome: DeliveryOutcome
  /** The HTTP status of the answer. */
  readonly status: number
  /** The time from the receiver's call to the acknowledgement, in ms. */
  readonly durationMs: number
  /** The event's key. It, `type` and `mediaId` are `undefined` if the delivery was rejected before it was parsed. */
  readonly key?: string | undefined
  /** The event's type. */
  readonly type?: string | undefined
  /** The id of the media item that the event is about. */
  readonly mediaId?: string | undefined
  /** The reason for the rejection, in more detail than the sender gets. */
  readonly reason?: string | undefined
  /** The error that a verifier, a store or a function of yours threw. */
  readonly error?: unknown
}

/** The report of a duplicate whose payload differs from the one that was accepted with its key. It has no values. */
export interface ConflictReport {
  readonly key: string
  readonly type: string
  readonly mediaId: string
  /** Names of the top-level fields that differ. */
  readonly fields: readonly string[]
}

/**
 * Functions that get a report of each delivery, each run of a handler, each attempt and each conflict. An error they throw is
 * logged and ignored.
 */
export interface Hooks {
  /** Called once for each delivery, after its acknowledgement is decided. */
  delivery?(report: DeliveryReport): void
  /** Called once for each run of a handler. */
  handling?(report: RunReport): void
  /** Called once for each attempt at an event, after its handlers. */
  attempt?(report: AttemptReport): void
  /** Called once for each key whose deliveries differ. */
  conflict?(report: ConflictReport): void
}
