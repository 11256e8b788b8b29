import type { AttemptReport, RunReport } from '../handlers/reports.ts'
import type { DeliveryOutcome } from './acknowledgement.ts'

/** Report of one delivery. Never contains the body, the title, a secret or the URL's query. */
export interface DeliveryReport {
  /** A success such as `accepted`, or the rejection code. */
  readonly outcome: DeliveryOutcome
  /** HTTP status of the answer. */
  readonly status: number
  /** From the call of `receive` to the acknowledgement (ms). */
  readonly durationMs: number
  /** Event key. `key`, `type` and `mediaId` are `undefined` if the delivery was rejected before parsing. */
  readonly key?: string | undefined
  readonly type?: string | undefined
  readonly mediaId?: string | undefined
  /** Why it was rejected, in more detail than the sender gets. */
  readonly reason?: string | undefined
  /** What a verifier, a store or one of your functions threw. */
  readonly error?: unknown
}

/** Report of a duplicate whose payload differs from the accepted delivery with the same key. Contains no values. */
export interface ConflictReport {
  readonly key: string
  readonly type: string
  readonly mediaId: string
  /** Names of the top-level fields that differ. Empty if they are not known. */
  readonly fields: readonly string[]
}

/** Callbacks for logs, metrics and alerts. An error they throw is logged and otherwise ignored. */
export interface Hooks {
  /** Once per delivery, when its acknowledgement is decided. */
  delivery?(report: DeliveryReport): void
  /** Once per handler run. */
  handling?(report: RunReport): void
  /** Once per attempt at an event, after its handlers. */
  attempt?(report: AttemptReport): void
  /** Once per key whose deliveries differ. */
  conflict?(report: ConflictReport): void
}
