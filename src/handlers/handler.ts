import type { EventFields } from '../events/event.ts'
import type { MediaEvent } from '../events/media-service/catalogue.ts'
import type { AnySender } from '../events/sender.ts'
import type { EventFrom, MediaService, TypeOf } from '../events/types.ts'
import type { Logger } from '../internal/logger.ts'
import type { RetryOptions } from './retry.ts'

/** The second argument of a handler. */
export interface HandlerContext {
  /** The event key: equal in every attempt and for every duplicate. Use it to make effects idempotent. */
  readonly key: string
  /** 1 for the first attempt. */
  readonly attempt: number
  /** Aborted with a `WebhookError` when the handler's time is up, the inbox closes or the lease was lost. */
  readonly signal: AbortSignal
  /** The time at which the delivery was accepted. */
  readonly receivedAt: Date
  /** The name that the verifier gave the one that sent the event, such as a tenant. `undefined` if it named none. */
  readonly principal: string | undefined
  /** The receiver's logger; each line carries the event's key, type and media id and the handler's name. */
  readonly log: Logger
}

/**
 * Handles an event. It succeeds when it returns or resolves; the value is not used.
 * @typeParam Additions the type of what the receiver's inbox adds to the context, such as `{ transaction }`
 */
export type Handler<Event extends EventFields = MediaEvent, Additions = unknown> = (
  event: Event,
  context: HandlerContext & Additions,
) => unknown

/** At most one handler for each type, for `createReceiver({ handlers })`. */
export type Handlers<Additions = unknown, Of extends AnySender = MediaService> = {
  readonly [Type in TypeOf<Of>]?: Handler<EventFrom<Of, Type>, Additions>
}

/** A number of runs in a second, a minute or an hour, such as `'10/s'`. */
export type Rate = `${number}/${'s' | 'min' | 'h'}`

/** The options of `on` and `onAny`. */
export interface HandlerOptions {
  /**
   * The handler's name in reports and dead letters. An inbox uses it to remember, across restarts, that the
   * handler succeeded.
   * @defaultValue the function's name, numbered if it is taken; `handler` if it has none
   */
  readonly name?: string
  /**
   * `true` to run it for test deliveries as well: those of the service's `webhook.check`, whose `event.test` is `true`.
   * @defaultValue false
   */
  readonly tests?: boolean
  /**
   * The time after which this handler counts as failed and its signal is aborted, in ms.
   * @defaultValue the receiver's `handlerTimeoutMs`
   */
  readonly timeoutMs?: number
  /**
   * The schedule of this handler's retries. The attempts at an event are counted once for all its handlers: while any
   * handler that failed has attempts left, the event is retried, without the handlers that have none. It does not apply
   * with `ack: 'handled'`, because the sender retries.
   * @defaultValue the receiver's `retry`, also for each option that is not given
   */
  readonly retry?: RetryOptions
  /**
   * Maximum number of its runs at a time, in this process. An event that waits for its turn keeps its place in the order, and
   * none of the inbox's `concurrency`. A run counts until the handler has really ended, even if its time was up.
   * @defaultValue that of the inbox
   */
  readonly concurrency?: number
  /**
   * Maximum rate of its runs in this process, retries included, such as `'10/s'`, `'600/min'` or `'1000/h'`. Runs start at even
   * intervals.
   * @defaultValue no limit
   */
  readonly rate?: Rate
}

/** A handler that failed. */
export interface FailedRun {
  /** The event that it failed for. */
  readonly event: MediaEvent
  /** The handler's name. */
  readonly handler: string
  /** The number of the attempt that failed; 1 for the first. */
  readonly attempt: number
  /** `true` when it will run again. */
  readonly willRetry: boolean
}

/** A function that is called for every failure of a handler. An error that it throws is logged and changes nothing. */
export type ErrorHandler = (error: unknown, run: FailedRun) => void
