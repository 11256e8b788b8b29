import type { EventFields } from '../events/event.ts'
import type { MediaEvent } from '../events/media-service/catalogue.ts'
import type { AnySender } from '../events/sender.ts'
import type { EventFrom, MediaService, TypeOf } from '../events/types.ts'
import type { Logger } from '../internal/logger.ts'
import type { RetryOptions } from './retry.ts'

/** The second argument of a handler. */
export interface HandlerContext {
  /** The event key. The same in every attempt and for every duplicate: use it to make side effects idempotent. */
  readonly key: string
  /** 1 for the first attempt. */
  readonly attempt: number
  /** Aborted with a `WebhookError`: the handler timed out or was stopped, the inbox closes, or the lease is lost. */
  readonly signal: AbortSignal
  /** When the delivery was accepted. */
  readonly receivedAt: Date
  /** Who sent the event according to the verifier, such as a tenant. `undefined` if the verifier named nobody. */
  readonly principal: string | undefined
  /** The receiver's logger; adds the event's key, type and media id and the handler's name to each line. */
  readonly log: Logger
}

/**
 * Handles an event. Returning or resolving is success; the value is ignored.
 * @typeParam Additions what the inbox adds to the context, such as `{ transaction }`
 */
export type Handler<Event extends EventFields = MediaEvent, Additions = unknown> = (
  event: Event,
  context: HandlerContext & Additions,
) => unknown

/** One handler per type, for `createReceiver({ handlers })`. */
export type Handlers<Additions = unknown, Of extends AnySender = MediaService> = {
  readonly [Type in TypeOf<Of>]?: Handler<EventFrom<Of, Type>, Additions>
}

/** Runs per second, minute or hour, such as `'10/s'`. */
export type Rate = `${number}/${'s' | 'min' | 'h'}`

/** Options of `on` and `onAny`. */
export interface HandlerOptions {
  /**
   * Name in reports, dead letters and storage, where it lets a retry skip the handlers that have succeeded.
   * @defaultValue the function's name, or the types it was registered for (`onAny` for all), numbered if in use
   */
  readonly name?: string
  /**
   * Also run for test deliveries, which the service's `webhook.check` sends (`event.test` is `true`).
   * @defaultValue false
   */
  readonly tests?: boolean
  /**
   * Time limit, in ms. Past it, the handler has failed and its signal is aborted.
   * @defaultValue the receiver's `handlerTimeoutMs`
   */
  readonly timeoutMs?: number
  /**
   * Backoff for this handler. Attempts are counted per event: it is retried while any failed handler has attempts left,
   * without those that have none. Not allowed with `ack: 'handled'`, where the sender retries.
   * @defaultValue the receiver's `retry`, option by option
   */
  readonly retry?: RetryOptions
  /**
   * Maximum concurrent runs, in this process. A waiting event keeps its place in the order, and uses none of the
   * inbox's `concurrency`. A handler that timed out still counts until it settles.
   * @defaultValue the inbox's `concurrency`
   */
  readonly concurrency?: number
  /**
   * Maximum rate of runs in this process, retries included: `'10/s'`, `'600/min'`, `'1000/h'`. Evenly spaced.
   * @defaultValue no limit
   */
  readonly rate?: Rate
}

/** A failed run of a handler. */
export interface FailedRun {
  readonly event: MediaEvent
  readonly handler: string
  /** 1 for the first attempt. */
  readonly attempt: number
  readonly willRetry: boolean
}

/** Called on every failure of a handler. What it throws is logged and otherwise ignored. */
export type ErrorHandler = (error: unknown, run: FailedRun) => void
