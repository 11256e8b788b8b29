import type { Outcome } from '../delivery.ts'

/** What became of one delivery. Neither the body, the title, a secret nor the URL's query is in it. */
export interface DeliveryReport {
  readonly outcome: Outcome
  readonly status: number
  /** From the first look at the delivery to its acknowledgement, in ms. */
  readonly durationMs: number
  /** The event, as far as the delivery came to be one. */
  readonly key?: string | undefined
  readonly type?: string | undefined
  readonly mediaId?: string | undefined
  /** Why it was refused, in more words than the sender is told. */
  readonly reason?: string | undefined
  /** What a verifier, a store or a function of the user threw. */
  readonly error?: unknown
}

/** What became of one run of one handler. */
export interface HandlingReport {
  /**
   * - `handled`: it succeeded.
   * - `retried`: it failed and will run again in `retryInMs`.
   * - `dead-lettered`: it failed and no attempts are left.
   * - `failed`: it failed under `ack: 'handled'`; the sender was told, unless it had already been told `in_progress`.
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
  readonly retryInMs?: number | undefined
  /** What the handler threw. */
  readonly error?: unknown
}

/** Functions that are told what happened, to log or to count. One that throws is logged and changes nothing. */
export interface Hooks {
  delivery?(report: DeliveryReport): void
  handling?(report: HandlingReport): void
}
