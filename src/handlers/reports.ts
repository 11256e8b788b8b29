import type { MediaEvent } from '../events/media-service/catalogue.ts'
import type { AcceptedEvent } from '../inbox/inbox.ts'
import type { InContext } from '../internal/async-context.ts'
import type { HandlerContext } from './handler.ts'

/** The report of one run of one handler. */
export interface RunReport {
  /**
   * - `handled`: it succeeded. With an `error`: it failed after its transaction was committed, and does not run again.
   * - `retried`: it failed and will run again in `retryInMs`.
   * - `dead-lettered`: it failed and does not run again: no attempts are left for it, or it threw a `PermanentFailure`.
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
  /** The id of the media item that the event is about. */
  readonly mediaId: string
  /** 1 for the first attempt. */
  readonly attempt: number
  /** The duration of this run, in ms. */
  readonly durationMs: number
  /** The pause before the next attempt, in ms. A handler that fails later in the same attempt can make it longer. */
  readonly retryInMs?: number | undefined
  /** The error that the handler threw, also when it threw it after its transaction was committed. */
  readonly error?: unknown
}

/** Returns `true` if a run counts as failed. A stopped one says nothing about its handler. */
export const hasFailed = (outcome: RunReport['outcome']): boolean => outcome !== 'handled' && outcome !== 'stopped'

/** The report of one attempt at an event: every handler that had not succeeded yet has run once. */
export interface AttemptReport {
  /**
   * - `handled`: all handlers of the event have succeeded.
   * - `retried`: a handler failed, and the next attempt follows.
   * - `dead-lettered`: a handler failed, and no handler that failed runs again.
   * - `failed`: a handler failed under `ack: 'handled'`.
   * - `stopped`: it was aborted, because the inbox closed or the lease was lost.
   * - `released`: no handler failed, and the event waits for a process that has the others, or for the end of their pause.
   *   It does not count.
   */
  readonly outcome: 'handled' | 'retried' | 'dead-lettered' | 'failed' | 'stopped' | 'released'
  /** The event's key. */
  readonly key: string
  /** The event's type. */
  readonly type: string
  /** The id of the media item that the event is about. */
  readonly mediaId: string
  /** 1 for the first attempt. */
  readonly attempt: number
  /** The time since the event's delivery was received, in ms. Two machines' clocks can take part in it. */
  readonly sinceReceivedMs: number
}

/** A run of a handler that begins. */
export interface StartedRun {
  readonly accepted: AcceptedEvent
  /** The handler's name. */
  readonly handler: string
  /** 1 for the first attempt. */
  readonly attempt: number
}

/** The span of a run of a handler. */
export interface RunSpan {
  /** Calls the handler while the span is the active one, and returns its result. */
  within<Result>(call: () => Result): Result
  /** Ends the span. */
  end(report: RunReport): void
}

/** A run that has ended, as it is reported. */
export interface EndedRun {
  readonly event: MediaEvent
  readonly handler: string
  /** The time at which it began, in ms of `performance.now`. */
  readonly startedAt: number
  readonly context: Pick<HandlerContext, 'attempt'>
  readonly span?: RunSpan | undefined
}

/** Takes the outcome of each run of a handler, and of each attempt. */
export interface RunReporter {
  /** Starts the span of a run. Absent without tracing. */
  startRun?: ((run: StartedRun) => RunSpan | undefined) | undefined
  run(outcome: RunReport['outcome'], run: EndedRun, error?: unknown, retryInMs?: number): void
  attempt(outcome: AttemptReport['outcome'], accepted: AcceptedEvent, attempt: number): void
  /** Calls a function of the user in the async context in which the receiver was made. */
  readonly inContext: InContext
  /**
   * Calls a function that the user gave, and returns its result. The error that it throws or rejects with is reported.
   * After a throw, the result is `undefined`.
   */
  guarded<Result>(what: string, call: () => Result): Result | undefined
}
