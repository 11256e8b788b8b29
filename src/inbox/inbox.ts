import type { MediaEvent } from '../events/media-service/catalogue.ts'
import type { Logger } from '../internal/logger.ts'
import type { MaybePromise } from '../internal/maybe-promise.ts'
import type { HandlerFailure, ReadableInbox, TraceCarrier, UnreadableDelivery } from './reading.ts'

/** An accepted event, on its way into the inbox. */
export interface AcceptedEvent {
  readonly event: MediaEvent
  readonly receivedAt: Date
  /** Trace context of the delivery, stored with the event. */
  readonly trace?: TraceCarrier | undefined
}

/** A deadline set by an event. If no end is accepted by `dueAt`, the inbox accepts `overdue`. */
export interface Expectation {
  readonly rule: string
  readonly dueAt: Date
  readonly overdue: AcceptedEvent
}

/**
 * How an event changes its media item's expectations; stored atomically with the event. An end closes every expectation
 * of its rule that began at or before it, even one accepted later: ends are remembered as long as event keys.
 */
export interface ExpectationChanges {
  /** The event's time by the sender's clock, else the time of receipt. */
  readonly at: Date
  readonly begins: readonly Expectation[]
  /** Rules whose expectations it ends. */
  readonly ends: readonly string[]
}

/** An inbox's answer to an event. `overloaded`: the inbox is full. */
export type Acceptance = 'accepted' | 'duplicate' | 'overloaded'

/**
 * The answer of {@link Inbox.handleNow}. `in-progress`: another process holds the event. `closing`: the inbox closed
 * before the attempt ended.
 */
export type ImmediateResult = 'handled' | 'failed' | 'duplicate' | 'in-progress' | 'overloaded' | 'closing'

/** A handler's run, as seen by its transaction. */
export interface TransactionScope {
  readonly handler: string
  /**
   * Aborted with a `WebhookError` when the run must stop or has failed: the transaction rolls back, unless its commit
   * is under way. The run waits for that, so keep it short.
   */
  readonly signal: AbortSignal
  /** Set by the inbox when its own storage failed: the attempt doesn't count against the handler. */
  storageFailed?: boolean
}

/**
 * What a database inbox adds to a handler's context.
 * @typeParam Client the connection to write through
 */
export interface Transactional<Client> {
  /**
   * Runs `run` in a transaction of the inbox's database. Its writes commit together with the record that this handler
   * has completed, only while this process holds the event; the handler then never runs again for it. An error, an
   * aborted signal or a lost lease rolls everything back. At most one call per run. What the handler does afterwards is
   * not retried.
   * @throws WebhookError `lease_lost`, `unavailable` when the database can't be reached, or the signal's reason. A
   * second call, or one after the handler has ended, throws `invalid_transaction` synchronously
   */
  transaction<Result>(run: (client: Client) => MaybePromise<Result>): Promise<Result>
}

/** A handler's run that an operator can stop. */
export interface StoppableRun {
  readonly handler?: string
  /** Aborts the handler's signal with the error and fails the run, like a timeout. */
  expire(error: Error): void
}

/** One attempt at an event: runs each handler that has not completed, once. */
export interface Attempt {
  readonly number: number
  /** Handlers that succeeded in earlier attempts. */
  readonly completed: readonly string[]
  /**
   * Failures of the last failed attempt. Handlers with a `final` one don't run. If absent, all unfinished handlers do.
   */
  readonly failures?: readonly HandlerFailure[] | undefined
  /** Earlier attempts with this number, in which the inbox's storage failed. Each makes the next delay longer. */
  readonly uncounted?: number | undefined
  /** `true` once the handlers must stop: the inbox gave up while closing, or the lease was lost. */
  readonly aborted: boolean
  /** Aborts together with `aborted`. May be created lazily, when a handler reads it. */
  readonly signal: AbortSignal
  run?: StoppableRun | undefined
  /** Records a handler's success while others still have to run. Absent if the record would not survive a crash. */
  readonly succeeded?: ((handler: string) => MaybePromise<void>) | undefined
  /**
   * `true` if only other processes have some of the owed handlers. Unless a handler fails, the result is then `retry`
   * without failures and with `counts: false`.
   */
  readonly lacksHandlers?: boolean | undefined
  /**
   * Tells whether a handler is paused. Attempts skip it, and are partial if it still had to run. Absent without pauses.
   */
  readonly isPaused?: ((handler: string) => boolean) | undefined
  /**
   * Frees the attempt's slot while a handler is at its limit. The event stays at the head of its lane. Resolves with a slot
   * again, once `turn` has, or earlier after a pause. `turn` must resolve on abort. Returns `undefined` if too many attempts
   * wait: the attempt then skips the handler and, unless another fails, ends with `retry`, no failures, `counts: false` and
   * `delayMs` until its turn. Absent if attempts can't wait.
   */
  readonly whileWaiting?: ((turn: Promise<void>) => Promise<void> | undefined) | undefined
  /** `true` if accepted for an expectation only: a process without that rule has nothing to do. Absent if unknown. */
  readonly owesNothing?: boolean | undefined
  /**
   * Runs `run` in a transaction of the inbox's database, committed together with the record that the handler has
   * completed. Rejects and rolls back once this process has lost the event. At most one call per run. Absent without a
   * database.
   */
  readonly transaction?:
    | (<Result>(scope: TransactionScope, run: (client: never) => MaybePromise<Result>) => Promise<Result>)
    | undefined
}

/** The result of an attempt: what the inbox must do next. */
export type AttemptResult =
  | { readonly status: 'done' }
  | {
      /** Runs the unfinished handlers again after `delayMs`, except those whose failure is `final`. */
      readonly status: 'retry'
      readonly delayMs: number
      readonly completed: readonly string[]
      /** Empty if no handler failed: the attempt was aborted or partial. */
      readonly failures: readonly HandlerFailure[]
      /** `false` keeps the attempt's number: the inbox's storage failed, or handlers were skipped and none failed. */
      readonly counts?: false | undefined
    }
  | {
      /** No failed handler will run again: the event becomes a dead letter. */
      readonly status: 'dead'
      readonly completed: readonly string[]
      readonly failures: readonly HandlerFailure[]
    }

/** Runs an event's handlers. Never rejects. */
export type Handle = (accepted: AcceptedEvent, attempt: Attempt) => Promise<AttemptResult>

/** Parses an unreadable delivery again: its events. Fails with a WebhookError `malformed` if it still can't. */
export type ParseUnreadable = (unreadable: UnreadableDelivery) => Promise<readonly MediaEvent[]>

/** An accepted event that was unfinished when the inbox closed. */
export interface UnfinishedEvent extends AcceptedEvent {
  /** `running` includes events whose handlers have ended but whose result was not recorded: they may run again. */
  readonly state: 'waiting' | 'running' | 'retrying'
}

/** What an inbox left unfinished when it closed. */
export interface CloseReport {
  /** Empty after a clean close. A memory inbox loses these events; a durable one handles them when next opened. */
  readonly unfinished: readonly UnfinishedEvent[]
}

/** The options of {@link Inbox.close}. */
export interface CloseOptions {
  /**
   * Time limit (ms). Up to 500 ms longer if the storage is unreachable.
   * @defaultValue 10_000
   */
  readonly timeoutMs?: number
}

/** The options of {@link Inbox.accept}. */
export interface AcceptOptions {
  /** Keeps the runtime alive until the promise settles. For inboxes whose handlers die with the process. */
  readonly waitUntil?: ((promise: Promise<unknown>) => void) | undefined
}

/** Keeps accepted events until their handlers have finished. Its contract is in the repository: `test/contract/suites`. */
export interface Inbox extends ReadableInbox {
  /**
   * Stores the event, or reports a duplicate, in one atomic step. Fails if it can't tell; with a WebhookError
   * `in_progress` if another process has claimed the event and may not have stored it yet.
   */
  accept(accepted: AcceptedEvent, options?: AcceptOptions): MaybePromise<Acceptance>
  /**
   * Stores several events of different keys, in order, or none of them. Absent if that takes more than one step: then they are
   * accepted one after the other.
   */
  acceptAll?(accepted: readonly AcceptedEvent[], options?: AcceptOptions): Promise<readonly Acceptance[]>
  /**
   * Stores the event in a transaction of the application: it is accepted if and only if that commits. Synchronous where the
   * client is. Absent if there is no client that could.
   * @throws WebhookError `invalid_option` for a client of another database; otherwise what the client throws
   */
  acceptIn?(client: object, accepted: AcceptedEvent): MaybePromise<Acceptance>
  /**
   * Accepts the event, makes one attempt and returns its result; a duplicate that arrives meanwhile gets the same
   * result (on Workers, `in-progress`). A failure releases the event's key, so the sender's retry is handled. Required
   * for `ack: 'handled'`.
   */
  handleNow?(accepted: AcceptedEvent): Promise<ImmediateResult>
  /**
   * Handles an event from a queue. Present if the inbox hands its events to one. Rejects only for an invalid `attempt`.
   * @param message what the inbox gave the queue: the object, or its JSON as text or bytes
   */
  handleMessage?(message: unknown, options?: MessageOptions): Promise<MessageResult>
  /**
   * Keeps an unreadable delivery as a dead letter, dropping the oldest beyond a limit. A durable inbox can replay it
   * once a deployed version parses it. Absent if nothing can be kept.
   */
  keepUnreadable?(unreadable: UnreadableDelivery): MaybePromise<void>
  /**
   * Resolves once the inbox can accept: it is open, and reaches its storage now. Cheap, since probes ask again and again.
   * Absent if there is no storage to reach, or none that can be asked.
   * @throws WebhookError `unavailable` when it cannot be opened, or can't reach its storage
   */
  ready?(): Promise<void>
  /** Makes every retry due now and keeps accepting: the process is about to exit. Absent if others can retry. */
  retryNow?(): void
  /** Stops accepting, finishes what it can in time and reports the rest. Idempotent. */
  close(options?: CloseOptions): Promise<CloseReport>
}

/** What a receiver reports to its inbox, for the activity record. */
export interface ActivityObserver {
  /** Called per delivery. `outcome`: `accepted`, `duplicate`, `ignored`, `test`, or why it was rejected. */
  delivery(report: { readonly outcome: string; readonly status: number; readonly durationMs: number }): void
  /** Called per attempt. `sinceReceivedMs`: time since the delivery arrived. */
  attempt(report: { readonly outcome: string; readonly sinceReceivedMs: number }): void
  /** Called per handler run. `outcome`: `handled`, `stopped`, or how it failed. */
  handling?(report: { readonly outcome: string; readonly handler: string }): void
}

/** A handler, as published to other processes. */
export interface HandlerName {
  readonly name: string
  /** The event types it handles. Absent: all. */
  readonly types?: readonly string[] | undefined
}

/** The order of a media item's events: the receiver's option `order`. */
export type EventOrder = 'loose' | 'strict'

/** The receiver, as its inbox sees it. */
export interface InboxHost {
  readonly handle: Handle
  /** Names the event's handlers, in the order they run. */
  readonly handlersOf: (event: MediaEvent) => readonly string[]
  /** Lists all handlers. The array is the same object until a handler is added or removed. */
  readonly handlers: () => readonly HandlerName[]
  /** Returns how an event changes expectations, or `undefined` if it doesn't. Absent in a host without rules. */
  readonly expectations?: (accepted: AcceptedEvent) => ExpectationChanges | undefined
  readonly parse: ParseUnreadable
  /**
   * `strict`: an event waits while an earlier one of its media item is retrying, in any process.
   * @defaultValue 'loose'
   */
  readonly order?: EventOrder | undefined
  /**
   * `handled`: deliveries are acknowledged once they are handled, by {@link Inbox.handleNow}.
   * @defaultValue 'accepted'
   */
  readonly ack?: 'accepted' | 'handled' | undefined
  /** Never throws. */
  readonly logger: Logger
  /** Reports an event that became a dead letter without an attempt: too many crashes, or handlers that no process has. */
  readonly deadLettered?: ((accepted: AcceptedEvent, attempts: number) => void) | undefined
  /** Subscribes to this receiver's deliveries, attempts and handler runs in this process. */
  observe(observer: ActivityObserver): void
  /** Reports a storage step with its duration (ms) and error. Absent without telemetry. `step`: `accept`, `claim`, … */
  readonly measured?: ((step: string, durationMs: number, error?: unknown) => void) | undefined
}

/**
 * Where accepted events live: in process memory, in a local file, in a database that other processes reach, or
 * `handed-over` to a queue or object that also starts their handling, so this process may exit.
 */
export type InboxStorage = 'memory' | 'file' | 'database' | 'handed-over'

/** The result of {@link Inbox.handleMessage}: what the queue must do with the message. */
export type MessageResult =
  /** Handled, now or before. Delete the message. */
  | { readonly status: 'done' }
  /** Deliver the message again, after `delayMs` if the queue supports delays. */
  | { readonly status: 'retry'; readonly delayMs: number }
  /** No failed handler will run again. Move the message to the dead letters. */
  | { readonly status: 'dead'; readonly failures: readonly HandlerFailure[] }

/** The options of {@link Inbox.handleMessage}. */
export interface MessageOptions {
  /**
   * How often the queue has delivered the message, this time included. Leave it out if the queue doesn't count.
   * @defaultValue 1
   */
  readonly attempt?: number | undefined
}

/**
 * An inbox for a receiver to open, made by `memoryInbox()`, `sqliteInbox({ path })` and so on.
 * @typeParam Additions what the inbox adds to the handlers' context, such as `{ transaction }`
 */
export interface InboxDefinition<out Additions = unknown> {
  readonly name: string
  /** `true` if the inbox has {@link Inbox.handleNow} where {@link InboxHost.ack} is `handled`. */
  readonly handlesNow?: boolean
  readonly storage?: InboxStorage
  /** `true` if only this process remembers event keys: two processes may handle the same event. */
  readonly localKeys?: boolean | undefined
  /** `true` if the inbox keeps expectations, which `receiver.expect` needs. */
  readonly expects?: boolean | undefined
  /** `true` if the inbox can keep strict order: {@link InboxHost.order}. */
  readonly ordersStrictly?: boolean | undefined
  /** `true` if attempts can wait for a handler's limit, which `concurrency` and `rate` of `on` need. */
  readonly limits?: boolean | undefined
  /** `true` if handlers keep running between requests, even on Workers. */
  readonly outlivesRequests?: boolean
  /** Never set: carries the type parameter. */
  readonly additions?: Additions
  /**
   * Opens the inbox and starts handling events. The receiver calls it once.
   * @throws WebhookError `invalid_option` the second time, `unavailable` when the inbox cannot be opened
   */
  open(host: InboxHost): Inbox
}
