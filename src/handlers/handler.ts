import type { EventOf, EventType, MediaEvent } from '../events/catalogue.ts'
import type { Logger } from '../internal/logger.ts'

/** What a handler is told beside the event. */
export interface HandlerContext {
  /** The event key: equal in every attempt and for every duplicate. Use it to make effects idempotent. */
  readonly key: string
  /** 1 for the first attempt. */
  readonly attempt: number
  /** Aborted with a `WebhookError` when the handler's time is up, the inbox closes or the lease was lost. */
  readonly signal: AbortSignal
  /** When the delivery was accepted. */
  readonly receivedAt: Date
  /** The receiver's logger; each line carries the event's key, type and media id and the handler's name. */
  readonly log: Logger
}

/** Handles an event. It succeeds by returning or resolving; what it returns is not used. */
export type Handler<Event extends MediaEvent = MediaEvent> = (event: Event, context: HandlerContext) => unknown

/** One handler a type, for `createReceiver({ handlers })`. */
export type Handlers = { readonly [Type in EventType]?: Handler<EventOf<Type>> }

/** How a handler is registered. */
export interface HandlerOptions {
  /**
   * Names it in reports and dead letters, and lets an inbox remember across restarts that it has succeeded.
   * @defaultValue the function's name, numbered where it is taken; `handler` where it has none
   */
  readonly name?: string
}

/** A handler that failed. */
export interface FailedHandling {
  readonly event: MediaEvent
  readonly handler: string
  readonly attempt: number
  /** Whether it will run again. */
  readonly willRetry: boolean
}

/** Told of every failure of a handler. One that throws is logged and changes nothing. */
export type ErrorHandler = (error: unknown, handling: FailedHandling) => void
