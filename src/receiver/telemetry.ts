import type { Delivery } from '../delivery.ts'
import type { MediaEvent } from '../events/media-service/catalogue.ts'
import type { RunSpan, StartedRun } from '../handlers/reports.ts'
import type { Inbox, InboxHost } from '../inbox/inbox.ts'
import type { TraceCarrier } from '../inbox/reading.ts'
import type { DeliveryReport, Hooks } from './hooks.ts'

/** The span of a delivery. */
export interface DeliverySpan {
  /** Takes the delivery through its path while the span is the active one, and returns the result. */
  within<Result>(receive: () => Result): Result
  /** The trace that the inbox stores with the event, so that its handlers also belong to it. */
  readonly trace: TraceCarrier | undefined
  /** Ends the span. The event is `undefined` if the delivery was rejected before it was parsed. */
  end(report: DeliveryReport, event: MediaEvent | undefined): void
}

/**
 * Traces and measures a receiver. `openTelemetry()` of `media-webhooks/opentelemetry` makes one. It serves one receiver,
 * and its methods must not throw.
 */
export interface Telemetry extends Hooks {
  /**
   * Called once, when the receiver has opened its inbox.
   * @param name the inbox's
   * @param types the event types of the sender; it can send others
   */
  opened(inbox: Inbox, name: string, types: readonly string[]): void
  /** Called when the receiver begins to close. */
  closing(): void
  /** Starts the span of a delivery, while only its headers are known. */
  startDelivery(delivery: Delivery): DeliverySpan
  /** Starts the span of a run of a handler. The event may have been delivered long ago, to another process. */
  startRun(run: StartedRun): RunSpan
  /** Takes the duration of a step in the inbox's storage. */
  readonly measured: NonNullable<InboxHost['measured']>
}
