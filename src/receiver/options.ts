import type { Delivery } from '../delivery.ts'
import { WebhookError } from '../errors.ts'
import type { LookupOutcome } from '../events/lookup.ts'
import type { EventKeySource } from '../events/parse.ts'
import type { AnySender } from '../events/sender.ts'
import type { AnyEventOf, EventFrom, LookupOf, MediaService, TypeOf } from '../events/types.ts'
import type { ExpectationOptions, OverdueHandler } from '../handlers/expectations.ts'
import type { ErrorHandler, Handler, HandlerOptions, Handlers } from '../handlers/handler.ts'
import type { RetryOptions } from '../handlers/retry.ts'
import type {
  AcceptOptions,
  CloseOptions,
  CloseReport,
  EventOrder,
  Inbox,
  InboxDefinition,
  MessageOptions,
  MessageResult,
} from '../inbox/inbox.ts'
import {
  anObject,
  checkedApart,
  checkOptions,
  having,
  headerName,
  oneOf,
  type Rules,
  required,
  wholeNumber,
} from '../internal/check-options.ts'
import { type Logger, logLevels } from '../internal/logger.ts'
import type { Verifier } from '../verify/verifier.ts'
import type { Acknowledgement } from './acknowledgement.ts'
import type { Hooks } from './hooks.ts'
import { type Platform, platforms } from './platform.ts'
import type { Telemetry } from './telemetry.ts'

/**
 * The options of `createReceiver`.
 * @typeParam Additions the type of what the inbox adds to the context of the handlers, such as `{ transaction }`
 * @typeParam Of the sender
 */
export interface ReceiverOptions<Additions = unknown, Of extends AnySender = MediaService> {
  /** Decides which deliveries come from the sender. `unverified()` accepts them all. */
  readonly verify: Verifier
  /**
   * The service that sends the deliveries, if it is another than the media service: what `defineSender` returns.
   * @defaultValue the media service
   */
  readonly sender?: Of
  /** The initial handlers, at most one for each type; `on` adds more. */
  readonly handlers?: Handlers<NoInfer<Additions>, NoInfer<Of>>
  /**
   * Keeps accepted events until they are handled.
   * @defaultValue `memoryInbox()`
   */
  readonly inbox?: InboxDefinition<Additions>
  /**
   * The moment of the acknowledgement: `accepted`, once the event is in the inbox, or `handled`, after its handlers.
   * @defaultValue 'accepted'
   */
  readonly ack?: 'accepted' | 'handled'
  /**
   * Where the receiver runs, if it cannot tell by the environment: `server` for a process that stays alive, or a platform
   * for functions, which stops its instances. The receiver rejects setups that would lose events there.
   * @defaultValue what the environment says
   */
  readonly platform?: Platform | 'server' | undefined
  /**
   * Maximum time that the answer waits for the handlers, in ms. After that, the delivery is answered 503
   * `in_progress` while the handlers continue. Keep it below the sender's limit, which was observed to be 3 s. Only
   * with `ack: 'handled'`.
   * @defaultValue 2_500
   */
  readonly ackTimeoutMs?: number
  /**
   * The time after which a handler counts as failed and its signal is aborted, in ms.
   * @defaultValue 30_000
   */
  readonly handlerTimeoutMs?: number
  /**
   * `loose`: a media item's events start in order of acceptance, and later ones overtake a retry. `strict`: they wait for it, be it
   * after a failure, for a paused handler or for a process that has its handler, until it is handled or a dead letter.
   * @defaultValue 'loose'
   */
  readonly order?: EventOrder
  /**
   * The schedule of retries of failed handlers. It does not apply with `ack: 'handled'`, because the sender retries.
   */
  readonly retry?: RetryOptions
  /**
   * Maximum size of a body, in bytes.
   * @defaultValue 65_536
   */
  readonly maxBodyBytes?: number
  /**
   * The time that the body of a delivery may take to arrive, in ms. After that, it is answered 400 `incomplete`. A
   * verifier that returns a promise has the same time. After that, the delivery is answered 503 `unavailable`.
   * @defaultValue 10_000
   */
  readonly bodyTimeoutMs?: number
  /**
   * Replaces the event key. A delivery without the named header gets the default key.
   * @defaultValue the id that the sender's `read` returns or a verifier offers, otherwise a key made of the payload
   */
  readonly eventKey?: EventKeySource<AnyEventOf<NoInfer<Of>>>
  /** Functions that get a report of each delivery, of each run of a handler and of each attempt. */
  readonly hooks?: Hooks
  /** Traces and measures the receiver: `openTelemetry()` of `media-webhooks/opentelemetry`. */
  readonly telemetry?: Telemetry
  /**
   * Writes the log lines; it has the methods of a pino logger. Bodies, titles, secrets and URL queries are never
   * logged.
   * @defaultValue warnings and errors on the console
   */
  readonly logger?: Logger
}

/**
 * Receives deliveries and passes their events to handlers.
 * @typeParam Additions the type of what the inbox adds to the context of the handlers, such as `{ transaction }`
 * @typeParam Of the sender
 */
export interface Receiver<out Additions = unknown, Of extends AnySender = MediaService> {
  /** Takes a delivery through the whole path. The promise never rejects: every delivery has an acknowledgement. */
  receive(delivery: Delivery): Promise<Acknowledgement>
  /**
   * Takes an event that a look-up of yours found, through the path of a delivery after its verification. `event.source` is
   * `lookup`. Its key is made like that of a delivery without headers; with `eventKey: lifecycleKey`, the late delivery of
   * the event is a duplicate. Look-ups are logged, and not reported as deliveries.
   *
   * ```ts
   * await receiver.accept({ type: 'encoding.finished', mediaId: video.id, qualities: ['360p', '720p'] })
   * ```
   * @param options `waitUntil`, which a platform for functions needs with the memory inbox
   * @throws WebhookError `malformed`, `overloaded`, `closing`, `unavailable` or `in_progress`, as a delivery is rejected;
   * `internal` if the function of `eventKey` throws; `invalid_option` with `ack: 'handled'`
   */
  accept(found: LookupOf<Of>, options?: AcceptOptions): Promise<LookupOutcome>
  /**
   * Handles a message that `queueInbox` has sent to its queue. It runs the handlers that have not completed yet, and
   * tells the queue what to do. An event that was handled before is `done`.
   * @param message the message as sent: the object, or its JSON as text or bytes
   * @throws WebhookError `invalid_option` for an attempt that is not a whole number from 1, or when the inbox has no
   * queue
   */
  handle(message: unknown, options?: MessageOptions): Promise<MessageResult>
  /**
   * Registers a handler for one type or several.
   * @throws WebhookError `invalid_option` for a type that is not in the catalogue, or a name that is taken.
   */
  on<Type extends TypeOf<Of>>(
    type: Type | readonly Type[],
    handler: Handler<EventFrom<Of, Type>, Additions>,
    options?: HandlerOptions,
  ): Receiver<Additions, Of>
  /** Registers a handler for events of every type, unknown types included. */
  onAny(handler: Handler<AnyEventOf<Of>, Additions>, options?: HandlerOptions): Receiver<Additions, Of>
  /**
   * Expects that each event of `type` is followed by one of `then`, of the same media item, within a time. The
   * deadline is stored with the event. An event of `then` ends it, in whatever order the two arrive. Otherwise the
   * handler runs when it is overdue, and is retried like any handler. A receiver that handles the events of others needs
   * the same rules as they have.
   *
   * ```ts
   * receiver.expect('file.received', { then: ['encoding.finished', 'encoding.failed'], within: '2 h' }, (overdue) =>
   *   alertOperators(`${overdue.mediaId} was not encoded by ${overdue.dueAt.toISOString()}`),
   * )
   * ```
   * @throws WebhookError `invalid_option` for an invalid rule, a name that is taken, or an inbox that keeps no expectations
   * on this platform
   */
  expect<Type extends TypeOf<Of>>(
    type: Type | readonly Type[],
    rule: ExpectationOptions<TypeOf<Of>>,
    handler: OverdueHandler<Type, Additions, Of>,
  ): Receiver<Additions, Of>
  /** Removes a handler from one type or several, or from every type. */
  off<Type extends TypeOf<Of>>(
    type: Type | readonly Type[],
    handler: Handler<EventFrom<Of, Type>, Additions>,
  ): Receiver<Additions, Of>
  off(handler: Handler<never, Additions>): Receiver<Additions, Of>
  /** Returns true if a handler is registered for events of the type; with `onAny`, `true` for all. */
  handles(type: TypeOf<Of>): boolean
  /** Registers a function that is called for every failure of a handler. */
  onError(handler: ErrorHandler): Receiver<Additions, Of>
  /** Adds hooks to those that the receiver was made with. Returns a function that removes them. */
  observe(hooks: Hooks): () => void
  /**
   * Resolves once the inbox can accept. Await it before the server listens, so that an unusable database is an error at
   * start. Until then, deliveries wait for the inbox.
   * @throws WebhookError `unavailable` when the inbox cannot be opened
   */
  ready(): Promise<void>
  /**
   * Rejects new deliveries with 503, accepts those in flight, and closes the inbox. Close the server first:
   * `closeServer` of `media-webhooks/node` does both. Safe to call again.
   */
  close(options?: CloseOptions): Promise<CloseReport>
  /** The open inbox, for its statistics and dead letters. */
  readonly inbox: Inbox
  /** The service whose deliveries it takes. */
  readonly sender: Of
  /** The setup of the receiver, for adapters and the dashboard. */
  readonly setup: ReceiverSetup
}

/** The setup of a receiver: its inbox, the moment of its acknowledgement, its order and its logger. */
export interface ReceiverSetup {
  readonly inbox: Pick<InboxDefinition, 'name' | 'storage' | 'localKeys'>
  /** The moment of the acknowledgement. */
  readonly ack: 'accepted' | 'handled'
  readonly order: EventOrder
  /** Writes the log lines. It never throws. */
  readonly logger: Logger
}

/**
 * Checks at run time what the types check at compile time, for callers who use JavaScript.
 * @throws WebhookError `invalid_option`
 */
export function checkReceiverOptions<Additions, Of extends AnySender>(options: ReceiverOptions<Additions, Of>): void {
  const { verify, inbox, ack = 'accepted', ackTimeoutMs, retry, eventKey, order } = options ?? ({} as never)
  // Without `needsBytes`, a verifier of signatures would be called with an empty body, and could accept it.
  if (typeof verify?.verify !== 'function' || typeof verify.needsBytes !== 'boolean') {
    throw invalid(
      'choose how deliveries are verified, such as verify: urlToken({ secret }); ' +
        'unverified() accepts all. Your own has name, needsBytes and verify',
    )
  }
  checkOptions('createReceiver', options, rules)
  if (ack === 'handled' && inbox !== undefined && inbox.handlesNow !== true) {
    throw invalid(`ack 'handled' works with the memory inbox only, not with ${inbox.name}`)
  }
  if (ack === 'handled' ? retry !== undefined : ackTimeoutMs !== undefined) {
    const ineffective = ack === 'handled' ? 'retry' : 'ackTimeoutMs'
    throw invalid(`${ineffective} has no effect with ack '${ack}'`)
  }
  if (order === 'strict' && ack === 'handled') throw invalid("order 'strict' has no effect with ack 'handled'")
  if (order === 'strict' && inbox !== undefined && inbox.ordersStrictly !== true) {
    throw invalid(
      `${inbox.name} can't keep order 'strict'; memoryInbox without a shared store, sqliteInbox, postgresInbox, pgliteInbox and ` +
        'durableObjectInbox can',
    )
  }
  if (eventKey !== undefined && typeof eventKey !== 'function') {
    checkOptions('createReceiver: eventKey is a function or an object', eventKey, { header: required(headerName) })
  }
}

const rules: Rules<ReceiverOptions> = {
  verify: checkedApart,
  sender: having('what defineSender returns', 'read', 'toEvent'),
  handlers: anObject,
  inbox: having('a definition, such as memoryInbox() (are its parentheses missing?)', 'open'),
  ack: oneOf('accepted', 'handled'),
  ackTimeoutMs: wholeNumber(),
  handlerTimeoutMs: wholeNumber(),
  order: oneOf('loose', 'strict'),
  retry: checkedApart,
  maxBodyBytes: wholeNumber(),
  bodyTimeoutMs: wholeNumber(),
  eventKey: checkedApart,
  hooks: anObject,
  platform: oneOf(...platforms),
  telemetry: having('openTelemetry() (are its parentheses missing?)', 'startDelivery'),
  logger: having(`a logger, which has the methods ${logLevels.join(', ')}`, ...logLevels),
}

const invalid = (message: string): WebhookError => new WebhookError('invalid_option', `createReceiver: ${message}`)
