import type { DeliveryOutcome } from './acknowledgement.ts'

/** The report of one delivery. It never holds the body, the title, a secret or the URL's query. */
export interface DeliveryReport {
  readonly outcome: DeliveryOutcome
  readonly status: number
  /** From the first look at the delivery to its acknowledgement, in ms. */
  readonly durationMs: number
  /** The event's key; `undefined` where the delivery was rejected before it was parsed, as `type` and `mediaId` are. */
  readonly key?: string | undefined
  readonly type?: string | undefined
  readonly mediaId?: string | undefined
  /** Why it was rejected, in more words than the sender gets. */
  readonly reason?: string | undefined
  /** The error that a verifier, a store or a function of yours threw. */
  readonly error?: unknown
}

/** The report of one run of one handler. */
export interface HandlingReport {
  /**
   * - `handled`: it succeeded.
   * - `retried`: it failed and will run again in `retryInMs`.
   * - `dead-lettered`: it failed and no attempts are left.
   * - `failed`: it failed under `ack: 'handled'`; the sender got 500, unless it had already got 503 `in_progress`.
   * - `stopped`: it failed after its signal was aborted, because the inbox closed or the lease was lost.
   */
  readonly outcome: 'handled' | 'retried' | 'dead-lettered' | 'failed' | 'stopped'
  readonly handler: string
  readonly key: string
  readonly type: string
  readonly mediaId: string
  /** 1 for the first. */
  readonly attempt: number
  readonly durationMs: number
  /** The pause before the next attempt, in ms. */
  readonly retryInMs?: number | undefined
  /** The error that the handler threw. */
  readonly error?: unknown
}

/** Functions that get a report of each delivery and each run of a handler. One that throws is logged and changes nothing. */
export interface Hooks {
  /** Called once for each delivery, after its acknowledgement is decided. */
  delivery?(report: DeliveryReport): void
  /** Called once for each run of a handler. */
  handling?(report: HandlingReport): void
}
