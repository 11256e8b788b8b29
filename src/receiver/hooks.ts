import type { MediaEvent } from '../events/media-service/catalogue.ts'
import type { AttemptReport, RunReport } from '../handlers/reports.ts'
import { msSince } from '../internal/timers.ts'
import type { Acknowledgement, DeliveryOutcome, EventCounts } from './delivery.ts'

/** Report of one delivery. Never contains the body, the title, a secret or the URL's query. */
export interface DeliveryReport {
  /** A success such as `accepted`, or the rejection code. */
  readonly outcome: DeliveryOutcome
  /** HTTP status of the answer. */
  readonly status: number
  /** From the call of `receive` to the acknowledgement (ms). */
  readonly durationMs: number
  /**
   * Event key. `key`, `type` and `mediaId` are `undefined` if the delivery was rejected before parsing, or has no event or a list
   * of them.
   */
  readonly key?: string | undefined
  readonly type?: string | undefined
  readonly mediaId?: string | undefined
  /** Only of a delivery with a list of events: how many had each outcome. */
  readonly events?: EventCounts | undefined
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

/** What each hook gets. */
export type Reports = { readonly [Kind in keyof Hooks]-?: Parameters<NonNullable<Hooks[Kind]>>[0] }

/** Hears one kind of report: a hook of the user, of the inbox or of telemetry, or the log. Never throws. */
export interface Listener<Report> {
  hear(report: Report): void
  /** Asked before the report is built. Absent: it wants every report. */
  wants?(outcome: Report extends { readonly outcome: infer Outcome } ? Outcome : never, error: unknown): boolean
}

export function deliveryReport(
  { outcome, status, events }: Acknowledgement,
  startedAt: number,
  event: MediaEvent | undefined,
  error: Error | undefined,
): DeliveryReport {
  const identity = event && { key: event.key, type: event.type, mediaId: event.mediaId }
  const report = { outcome, status, durationMs: msSince(startedAt), ...identity, ...(events && { events }) }
  if (error === undefined) return report
  const { cause } = error
  const reason = reasonOf(error)
  // A string is our own, more detailed reason. User code or a driver threw anything else.
  return cause === undefined || typeof cause === 'string' ? { ...report, reason } : { ...report, reason, error: cause }
}

/** A string `cause` is a more detailed reason, for logs and hooks only. */
export const reasonOf = ({ message, cause }: Error): string => (typeof cause === 'string' ? cause : message)
