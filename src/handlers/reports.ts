import type { MediaEvent } from '../events/media-service/catalogue.ts'
import type { AcceptedEvent } from '../inbox/inbox.ts'
import type { InContext } from '../internal/async-context.ts'
import { msSince } from '../internal/timers.ts'
import type { HandlerContext } from './handler.ts'

/** Report of one handler run. */
export interface RunReport {
  /**
   * - `handled`: it succeeded. With an `error`: it threw after its transaction committed, and is not retried.
   * - `retried`: it failed and will run again in `retryInMs`.
   * - `dead-lettered`: it failed and does not run again: no attempts left, or a `PermanentFailure`.
   * - `failed`: it failed with `ack: 'handled'`; the sender got 500, or 503 if it failed after `ackTimeoutMs`.
   * - `stopped`: it failed after its signal was aborted, because the inbox closed or the lease was lost.
   */
  readonly outcome: 'handled' | 'retried' | 'dead-lettered' | 'failed' | 'stopped'
  readonly handler: string
  readonly key: string
  readonly type: string
  readonly mediaId: string
  /** 1 for the first attempt. */
  readonly attempt: number
  readonly durationMs: number
  /** Delay before the next attempt (ms). A later failure in the same attempt can lengthen it. */
  readonly retryInMs?: number | undefined
  /** What the handler threw. */
  readonly error?: unknown
}

/** Report of one attempt at an event: one run of each handler that had not succeeded before. */
export interface AttemptReport {
  /**
   * - `handled`: all handlers have succeeded.
   * - `retried`: a handler failed, and another attempt follows.
   * - `dead-lettered`: a handler failed, and no failed handler runs again. Or no attempt was made: the process crashed ten
   *   times while handling the event, or no process has its handlers.
   * - `failed`: a handler failed with `ack: 'handled'`.
   * - `stopped`: aborted, because the inbox closed or the lease was lost.
   * - `released`: no handler failed, but some could not run: they are paused, at their limit, or registered in another
   *   process only. Does not count as an attempt.
   */
  readonly outcome: 'handled' | 'retried' | 'dead-lettered' | 'failed' | 'stopped' | 'released'
  readonly key: string
  readonly type: string
  readonly mediaId: string
  /** 1 for the first attempt. */
  readonly attempt: number
  /** Time since the delivery was received (ms). Subject to clock skew if another machine received it. */
  readonly sinceReceivedMs: number
}

/** A handler run that is about to start. */
export interface StartedRun {
  readonly accepted: AcceptedEvent
  readonly handler: string
  readonly attempt: number
}

/** The span of a handler run. */
export interface RunSpan {
  /** Calls the handler with the span active and returns its result. */
  within<Result>(call: () => Result): Result
  end(report: RunReport): void
}

export interface EndedRun {
  readonly event: MediaEvent
  readonly handler: string
  /** `performance.now()`, ms. */
  readonly startedAt: number
  readonly context: Pick<HandlerContext, 'attempt'>
  readonly span?: RunSpan | undefined
}

/** What attempts report to. */
export interface RunReporter {
  /** Absent without tracing. */
  startRun?: ((run: StartedRun) => RunSpan | undefined) | undefined
  run(outcome: RunReport['outcome'], run: EndedRun, error?: unknown, retryInMs?: number): void
  attempt(outcome: AttemptReport['outcome'], accepted: AcceptedEvent, attempt: number): void
  /** Calls user code in the async context that created the receiver. */
  readonly inContext: InContext
  /** Calls a function once within a span, whatever the span does. */
  within<Result>(span: Pick<RunSpan, 'within'>, call: () => Result): Result
  /** Calls user code and logs what it throws or rejects with. Returns its result, `undefined` after a throw. */
  guarded<Result>(what: string, call: () => Result): Result | undefined
}

export function runReport(
  outcome: RunReport['outcome'],
  { event, handler, startedAt, context }: EndedRun,
  error: unknown,
  retryInMs: number | undefined,
): RunReport {
  const { key, type, mediaId } = event
  const durationMs = msSince(startedAt)
  const report = { outcome, handler, key, type, mediaId, attempt: context.attempt, durationMs }
  if (outcome === 'handled' && error === undefined) return report
  return retryInMs === undefined ? { ...report, error } : { ...report, retryInMs, error }
}

export function attemptReport(
  outcome: AttemptReport['outcome'],
  { event: { key, type, mediaId }, receivedAt }: AcceptedEvent,
  attempt: number,
): AttemptReport {
  return { outcome, key, type, mediaId, attempt, sinceReceivedMs: Math.max(0, Date.now() - receivedAt.getTime()) }
}
