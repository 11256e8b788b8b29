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
  aPlainObject,
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
import type { Acknowledgement, Delivery } from './delivery.ts'
import type { Hooks } from './hooks.ts'
import { type Platform, platforms } from './platform.ts'
import type { Telemetry } from './telemetry.ts'

/**
 * Options of `createReceiver`.
 * @typeParam Additions what the inbox adds to the handlers' context, such as `{ transaction }`
 */
export interface ReceiverOptions<Additions = unknown, Of extends AnySender = MediaService> {
  /** Verifies that a delivery comes from the sender. `unverified()` accepts them all. */
  readonly verify: Verifier
  /**
   * The service that sends the deliveries, as returned by `defineSender`.
   * @defaultValue the media service
   */
  readonly sender?: Of
  /** Handlers by event type. Use `on` for several per type, or for options. */
  readonly handlers?: Handlers<NoInfer<Additions>, NoInfer<Of>>
  /**
   * Stores accepted events until they are handled.
   * @defaultValue `memoryInbox()`
   */
  readonly inbox?: InboxDefinition<Additions>
  /**
   * When to acknowledge: `accepted`, once the event is in the inbox, or `handled`, after its handlers.
   * @defaultValue 'accepted'
   */
  readonly ack?: 'accepted' | 'handled'
  /**
   * Where the receiver runs: `server` for a process that stays alive, or a platform that stops instances between
   * requests. Setups that would lose events there are rejected.
   * @defaultValue detected from the environment
   */
  readonly platform?: Platform | 'server' | undefined
  /**
   * How long the answer waits for the handlers, in ms. After that the sender gets 503 `in_progress`, and the handlers
   * continue. Keep it below the sender's own timeout (3 s, observed). Only with `ack: 'handled'`.
   * @defaultValue 2_500
   */
  readonly ackTimeoutMs?: number
  /**
   * Time limit of a handler, in ms. Past it, the handler has failed and its signal is aborted.
   * @defaultValue 30_000
   */
  readonly handlerTimeoutMs?: number
  /**
   * Order of one media item's events. `loose`: they start in order of acceptance, and overtake an event that waits for
   * a retry. `strict`: head-of-line blocking. An event that waits for a retry, for a paused handler or for a process
   * that has its handler holds up the later ones until it is handled or a dead letter.
   * @defaultValue 'loose'
   */
  readonly order?: EventOrder
  /** Backoff for failed handlers. Not allowed with `ack: 'handled'`, where the sender retries. */
  readonly retry?: RetryOptions
  /**
   * Maximum size of a body, in bytes.
   * @defaultValue 65_536
   */
  readonly maxBodyBytes?: number
  /**
   * Maximum number of values in a payload, nested ones included.
   * @defaultValue 4_096
   */
  readonly maxJsonValues?: number
  /**
   * Time limit for the body to arrive, in ms; past it the answer is 400 `incomplete`. An asynchronous verifier and a
   * handshake have the same limit; past it the answer is 503 `unavailable`.
   * @defaultValue 10_000
   */
  readonly bodyTimeoutMs?: number
  /**
   * Where the event key comes from. A delivery without the named header gets the default key.
   * @defaultValue the id from the sender's `read` or the verifier, otherwise a key derived from the payload
   */
  readonly eventKey?: EventKeySource<AnyEventOf<NoInfer<Of>>>
  /** Callbacks with a report of each delivery, handler run, attempt and conflict. */
  readonly hooks?: Hooks
  /** Traces and metrics: `openTelemetry()` of `media-webhooks/opentelemetry`. */
  readonly telemetry?: Telemetry
  /**
   * Any logger with pino's methods. Bodies, titles, secrets and URL queries are never logged.
   * @defaultValue warnings and errors on the console
   */
  readonly logger?: Logger
}

/** The options of `receiver.accept`. */
export interface LookupOptions extends AcceptOptions {
  /**
   * A connection to the inbox's database, in a transaction of yours: a client of `pg` with `postgresInbox`, a connection to
   * the inbox's file with `sqliteInbox`. The event is handled once you commit. `accepted` means that it will be; a key that is
   * known by then is a duplicate after all. With a synchronous driver, the event is stored within the call.
   */
  readonly client?: object | undefined
}

/**
 * Receives deliveries and passes their events to handlers.
 * @typeParam Additions what the inbox adds to the handlers' context, such as `{ transaction }`
 */
export interface Receiver<out Additions = unknown, Of extends AnySender = MediaService> {
  /** Verifies, parses and accepts a delivery. Never rejects: every delivery gets an acknowledgement. */
  receive(delivery: Delivery): Promise<Acknowledgement>
  /**
   * Accepts an event that you looked up, like a verified delivery. `event.source` is `lookup`. The key is derived as
   * for a delivery without headers; with `eventKey: lifecycleKey`, a late delivery of the event is a duplicate.
   * Look-ups are logged, but not reported to the `delivery` hook.
   *
   * ```ts
   * await receiver.accept({ type: 'encoding.finished', mediaId: video.id, qualities: ['360p', '720p'] })
   * ```
   * With `client`, the event is part of your own transaction: it is accepted if and only if that commits.
   *
   * ```ts
   * await client.query('UPDATE video SET archived = true WHERE id = $1', [id])
   * await receiver.accept({ type: 'encoding.finished', mediaId: id }, { client })
   * await client.query('COMMIT')
   * ```
   * @throws WebhookError `malformed`, `overloaded`, `closing`, `unavailable` or `in_progress`, as for a delivery;
   * `internal` if the `eventKey` function throws; `invalid_option` with `ack: 'handled'`, or for a `client` that the inbox
   * can't use
   */
  accept(found: LookupOf<Of>, options?: LookupOptions): Promise<LookupOutcome>
  /**
   * Runs the handlers of a message that `queueInbox` sent, without those that completed. The result tells the queue
   * what to do; it is `done` if the event was handled before.
   * @param message as sent: the object, or its JSON as text or bytes
   * @throws WebhookError `invalid_option` if the attempt is not a whole number from 1, or the inbox has no queue
   */
  handle(message: unknown, options?: MessageOptions): Promise<MessageResult>
  /**
   * Registers a handler for one or several types.
   * @throws WebhookError `invalid_option` for a type not in the catalogue, or a name already in use
   */
  on<Type extends TypeOf<Of>>(
    type: Type | readonly Type[],
    handler: Handler<EventFrom<Of, Type>, Additions>,
    options?: HandlerOptions,
  ): Receiver<Additions, Of>
  /** Registers a handler for events of every type, unknown types included. */
  onAny(handler: Handler<AnyEventOf<Of>, Additions>, options?: HandlerOptions): Receiver<Additions, Of>
  /**
   * Calls the handler, with the usual retries, if an event of `type` is not followed in time by one of `then` for the
   * same media item. The two may arrive in either order. The deadline is stored with the event. Receivers that share an
   * inbox need the same rules.
   *
   * ```ts
   * receiver.expect('file.received', { then: ['encoding.finished', 'encoding.failed'], within: '2 h' }, (overdue) =>
   *   alertOperators(`${overdue.mediaId} was not encoded by ${overdue.dueAt.toISOString()}`),
   * )
   * ```
   * @throws WebhookError `invalid_option` for an invalid rule, a name in use, or an inbox that can't keep it
   */
  expect<Type extends TypeOf<Of>>(
    type: Type | readonly Type[],
    rule: ExpectationOptions<TypeOf<Of>>,
    handler: OverdueHandler<Type, Additions, Of>,
  ): Receiver<Additions, Of>
  /** Removes a handler from the given types, or from all. */
  off<Type extends TypeOf<Of>>(
    type: Type | readonly Type[],
    handler: Handler<EventFrom<Of, Type>, Additions>,
  ): Receiver<Additions, Of>
  off(handler: Handler<never, Additions>): Receiver<Additions, Of>
  /** Returns `true` if events of the type have a handler or matter to an expectation. Always `true` with `onAny`. */
  handles(type: TypeOf<Of>): boolean
  /** Registers a function to call on every failure of a handler. */
  onError(handler: ErrorHandler): Receiver<Additions, Of>
  /** Adds hooks. Returns a function that removes them. */
  observe(hooks: Hooks): () => void
  /**
   * Resolves once the inbox can accept; until then, deliveries wait. Await it before listening, to fail at start-up. Later
   * it tells whether the inbox reaches its storage now: `health` of `media-webhooks/health` answers probes with it.
   * @throws WebhookError `unavailable` if the inbox can't be opened or can't reach its storage, `closing` once it closes
   */
  ready(): Promise<void>
  /**
   * Rejects new deliveries with 503, finishes those in flight, and closes the inbox. Close the server first, or use
   * `closeServer` of `media-webhooks/node`, which does both. Idempotent.
   */
  close(options?: CloseOptions): Promise<CloseReport>
  /** The open inbox, for its statistics and dead letters. */
  readonly inbox: Inbox
  readonly sender: Of
  /** Resolved options, for adapters and the dashboard. */
  readonly setup: ReceiverSetup
}

/** Resolved options of a receiver that adapters and the dashboard read. */
export interface ReceiverSetup {
  readonly inbox: Pick<InboxDefinition, 'name' | 'storage' | 'localKeys'>
  readonly ack: 'accepted' | 'handled'
  readonly order: EventOrder
  /** Never throws. */
  readonly logger: Logger
}

/**
 * Checks what the types can't: JavaScript callers, and options that exclude each other.
 * @throws WebhookError `invalid_option`
 */
export function checkReceiverOptions<Additions, Of extends AnySender>(options: ReceiverOptions<Additions, Of>): void {
  const { verify, inbox, ack = 'accepted', ackTimeoutMs, retry, eventKey, order } = options ?? ({} as never)
  // `needsBytes` is required: without it, a signature verifier would get an empty body, and might accept it.
  if (typeof verify?.verify !== 'function' || typeof verify.needsBytes !== 'boolean') {
    throw invalid(
      'choose how deliveries are verified, such as verify: urlToken({ secret }); ' +
        'unverified() accepts all. A custom verifier must have name, needsBytes and verify',
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
  handlers: aPlainObject,
  inbox: having('a definition, such as memoryInbox() (are its parentheses missing?)', 'open'),
  ack: oneOf('accepted', 'handled'),
  ackTimeoutMs: wholeNumber(),
  handlerTimeoutMs: wholeNumber(),
  order: oneOf('loose', 'strict'),
  retry: checkedApart,
  maxBodyBytes: wholeNumber(),
  maxJsonValues: wholeNumber(),
  bodyTimeoutMs: wholeNumber(),
  eventKey: checkedApart,
  hooks: checkedApart,
  platform: oneOf(...platforms),
  telemetry: having(
    'openTelemetry() (are its parentheses missing?)',
    'opened',
    'closing',
    'startDelivery',
    'startRun',
    'measured',
  ),
  logger: having(`a logger, which has the methods ${logLevels.join(', ')}`, ...logLevels),
}

const invalid = (message: string): WebhookError => new WebhookError('invalid_option', `createReceiver: ${message}`)
