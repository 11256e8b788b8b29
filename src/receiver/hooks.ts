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
  /** The id of the media that the event is about. */
  readonly mediaId?: string | undefined
  /** The reason for the rejection, in more detail than the sender gets. */
  readonly reason?: string | undefined
  /** The error that a verifier, a store or a function of yours threw. */
  readonly error?: unknown
}

/** The report of one run of one handler. */
export interface HandlingReport {
  /**
   * - `handled`: it succeeded. With an `error`: it failed after its transaction was committed, and does not run again.
   * - `retried`: it failed and will run again in `retryInMs`.
   * - `dead-lettered`: it failed and no attempts are left.
   * - `failed`: it failed under `ack: 'handled'`; the sender got 500, unless it had already got 503 `in_progress`.
   * - `stopped`: it failed after its signal was aborted, because the inbox closed or the lease was lost.
   */
  readonly outcome: 'handled' | 'retried' | 'dead-lettered' | 'failed' | 'stopped'
  /** The handler's name. */
  readonly handler: string
  /** The event's key. */
  readonly key: string
  /** The event's type. */
  readonly type: string
  /** The id of the media that the event is about. */
  readonly mediaId: string
  /** 1 for the first attempt. */
  readonly attempt: number
  /** The duration of this run, in ms. */
  readonly durationMs: number
  /** The pause before the next attempt, in ms. */
  readonly retryInMs?: number | undefined
  /** The error that the handler threw, also when it threw it after its transaction was committed. */
  readonly error?: unknown
}

/**
 * Functions that get a report of each delivery and each run of a handler. An error they throw is logged and ignored.
 */
export interface Hooks {
  /** Called once for each delivery, after its acknowledgement is decided. */
  delivery?(report: DeliveryReport): void
  /** Called once for each run of a handler. */
  handling?(report: HandlingReport): void
}
