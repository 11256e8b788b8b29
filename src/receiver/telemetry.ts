import type { MediaEvent } from '../events/media-service/catalogue.ts'
import type { RunSpan, StartedRun } from '../handlers/reports.ts'
import type { Inbox, InboxHost } from '../inbox/inbox.ts'
import type { TraceCarrier } from '../inbox/reading.ts'
import type { Delivery } from './delivery.ts'
import type { DeliveryReport, Hooks } from './hooks.ts'

/** The span of a delivery. */
export interface DeliverySpan {
  /** Calls `receive` with the span active and returns its result. */
  within<Result>(receive: () => Result): Result
  /** Stored with the event, so that its handlers join the trace. */
  readonly trace: TraceCarrier | undefined
  /** @param event `undefined` if the delivery was rejected before parsing */
  end(report: DeliveryReport, event: MediaEvent | undefined): void
}

/** Traces and measures one receiver, as `openTelemetry()` does. Its methods must not throw. */
export interface Telemetry extends Hooks {
  /** Called once the inbox is open, with its name and the catalogue's types; the sender may send others. */
  opened(inbox: Inbox, name: string, types: readonly string[]): void
  closing(): void
  /** Starts the span of a delivery. Its body is not read yet. */
  startDelivery(delivery: Delivery): DeliverySpan
  /** Starts the span of a handler run. The delivery may be long past, and in another process. */
  startRun(run: StartedRun): RunSpan
  /** Records the duration of a storage step (ms). */
  readonly measured: NonNullable<InboxHost['measured']>
}
