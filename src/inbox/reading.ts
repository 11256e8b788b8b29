import type { MediaEvent } from '../events/catalogue.ts'
import type { MaybePromise } from '../internal/maybe-promise.ts'

// What an inbox tells about its events, and what can be done to them by hand.

/** A handler that failed, and the message of its error. */
export interface HandlerFailure {
  /** The handler's name. */
  readonly handler: string
  /** The message of the error that it threw. */
  readonly message: string
}

/**
 * A delivery that passed verification and could not be parsed. Neither URL nor headers are kept: they contain secrets.
 */
export interface UnreadableDelivery {
  /** The reason why it could not be parsed. */
  readonly reason: string
  /** The time at which the delivery was received. */
  readonly receivedAt: Date
  /** The id that the verifier vouches for, or the value of the header that `eventKey` names. */
  readonly eventId: string | undefined
  /** The bytes as sent, or JSON written from the parsed body if another parser had consumed them. */
  readonly body: Uint8Array
}

/** An event that could not be handled, or a delivery that could not be parsed. */
export interface DeadLetter {
  /** The event's key; an unreadable delivery's is made from its body. */
  readonly key: string
  /** `undefined` for an unreadable delivery. */
  readonly event: MediaEvent | undefined
  /** The delivery, if it could not be parsed. */
  readonly unreadable?: UnreadableDelivery | undefined
  /** The time at which the delivery was received. */
  readonly receivedAt: Date
  /** The number of attempts that were made. */
  readonly attempts: number
  /** Names of the handlers that succeeded. */
  readonly completed: readonly string[]
  /** The handlers that failed in the last attempt. `handler` is `none` if no handler ran. */
  readonly failures: readonly HandlerFailure[]
  /** The time at which it became a dead letter. */
  readonly diedAt: Date
}

/** A dead letter that is an event. */
export interface DeadEvent extends DeadLetter {
  readonly event: MediaEvent
}

/** The dead letters of an inbox, newest first. */
export interface DeadLetters {
  /** Lists `limit` (100 by default) dead letters after the first `offset` (0). */
  list(options?: { readonly limit?: number; readonly offset?: number }): MaybePromise<readonly DeadLetter[]>
  /** Returns the dead letter with that key, or `undefined`. */
  get(key: string): MaybePromise<DeadLetter | undefined>
  /**
   * Passes the event to the handlers that have not completed, with fresh attempts. An unreadable delivery is parsed
   * again first. `false`: no dead letter has that key.
   * @throws WebhookError `in_progress`, `overloaded` or `closing` when the event cannot be taken, `malformed` when the
   * delivery still cannot be parsed; the dead letter is kept then
   */
  replay(key: string): MaybePromise<boolean>
  /** Deletes the dead letter for good. `false`: no dead letter has that key. */
  discard(key: string): MaybePromise<boolean>
}

/** The number of events in an inbox, by state. */
export interface InboxStats {
  /** Events that were accepted and have not started. */
  readonly waiting: number
  /** Events whose handlers are running. */
  readonly running: number
  /** Events that failed and wait for the next attempt. */
  readonly retrying: number
  /** Dead letters, unreadable deliveries included. */
  readonly deadLetters: number
}
