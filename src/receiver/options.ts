import type { Acknowledgement, Delivery } from '../delivery.ts'
import type { EventOf, EventType } from '../events/catalogue.ts'
import type { EventKeySource } from '../events/parse.ts'
import type { ErrorHandler, Handler, HandlerOptions, Handlers } from '../handlers/handler.ts'
import type { RetryOptions } from '../handlers/retry.ts'
import type { CloseOptions, CloseReport, Inbox } from '../inbox/inbox.ts'
import type { Logger } from '../internal/logger.ts'
import type { Verifier } from '../verify/verifier.ts'
import type { Hooks } from './hooks.ts'

/** The options of `createReceiver`. */
export interface ReceiverOptions {
  /** Decides which deliveries are the sender's. `unverified()` accepts them all. */
  readonly verify: Verifier
  /** Handlers to begin with; `on` adds more. */
  readonly handlers?: Handlers
  /**
   * Keeps accepted events until they are handled.
   * @defaultValue `memoryInbox()`
   */
  readonly inbox?: Inbox
  /**
   * When a delivery is acknowledged: `accepted`, once the event is in the inbox, or `handled`, after its handlers.
   * @defaultValue 'accepted'
   */
  readonly ack?: 'accepted' | 'handled'
  /**
   * With `ack: 'handled'`, how long the answer waits for the handlers, in ms. After it the delivery is answered 503
   * `in_progress` while the handlers go on. Keep it below the sender's limit, which was seen to be 3 s. Without
   * `ack: 'handled'` it is refused.
   * @defaultValue 2_500
   */
  readonly ackTimeoutMs?: number
  /**
   * How long a handler may run before it counts as failed and its signal is aborted, in ms.
   * @defaultValue 30_000
   */
  readonly handlerTimeoutMs?: number
  /** How failed handlers are retried. Refused with `ack: 'handled'`: there the sender retries. */
  readonly retry?: RetryOptions
  /**
   * The largest body that is read, in bytes.
   * @defaultValue 65_536
   */
  readonly maxBodyBytes?: number
  /**
   * Replaces the event key. A delivery without the named header gets the default key.
   * @defaultValue the id a verifier offers, otherwise a key made of the payload
   */
  readonly eventKey?: EventKeySource
  /** Told what became of each delivery and of each run of a handler. */
  readonly hooks?: Hooks
  /**
   * Takes log lines in pino's shape. Bodies, titles, secrets and URL queries are never logged.
   * @defaultValue warnings and errors on the console
   */
  readonly logger?: Logger
}

/** Receives deliveries and hands their events to handlers. */
export interface Receiver {
  /** Takes a delivery through the whole path. Never rejects: every delivery has an acknowledgement. */
  receive(delivery: Delivery): Promise<Acknowledgement>
  /**
   * Registers a handler for one type or several.
   * @throws WebhookError `invalid_option` for a type that is not in the catalogue, or a name that is taken.
   */
  on<Type extends EventType>(
    type: Type | readonly Type[],
    handler: Handler<EventOf<Type>>,
    options?: HandlerOptions,
  ): Receiver
  /** Registers a handler for every event, those of unknown types included. */
  onAny(handler: Handler, options?: HandlerOptions): Receiver
  /** Removes a handler from one type or several, or wherever it was registered. */
  off<Type extends EventType>(type: Type | readonly Type[], handler: Handler<EventOf<Type>>): Receiver
  off(handler: Handler<never>): Receiver
  /** Whether a handler is registered for events of the type; with `onAny`, true for all. */
  handles(type: EventType): boolean
  /** Registers a function that is told of every failure of a handler. */
  onError(handler: ErrorHandler): Receiver
  /** Refuses new deliveries with 503 and closes the inbox. Safe to call again. */
  close(options?: CloseOptions): Promise<CloseReport>
  /** The inbox, for its statistics and dead letters. */
  readonly inbox: Inbox
}
