import type { MediaEvent } from '../events/media-service/catalogue.ts'
import type { Logger } from '../internal/logger.ts'
import type { MaybePromise } from '../internal/maybe-promise.ts'
import type { HandlerFailure, ReadableInbox, TraceCarrier, UnreadableDelivery } from './reading.ts'

/** An event on its way into the inbox. */
export interface AcceptedEvent {
  readonly event: MediaEvent
  /** The time at which its delivery was received. */
  readonly receivedAt: Date
  /** The trace of its delivery. An inbox stores it with the event. */
  readonly trace?: TraceCarrier | undefined
}

/** A deadline that an event sets: unless an end is accepted before, the inbox hands `overdue` over. */
export interface Expectation {
  /** The name of its rule. */
  readonly rule: string
  readonly dueAt: Date
  /** The event that is handed over when no end was accepted by `dueAt`. It belongs to the same media item. */
  readonly overdue: AcceptedEvent
}

/**
 * The effects of an event on the expectations of its media item. An inbox stores them in the same step as the event. An end
 * counts for every expectation of its rule and media item that began at its time or earlier, in whatever order the two
 * were accepted: the inbox remembers ends for as long as event keys.
 */
export interface ExpectationChanges {
  /** The time of the event by the sender's clock; the time of its receipt if the sender gave none. */
  readonly at: Date
  readonly begins: readonly Expectation[]
  /** The names of the rules whose expectations it ends. */
  readonly ends: readonly string[]
}

/** An inbox's answer to an event. `overloaded`: it is full. */
export type Acceptance = 'accepted' | 'duplicate' | 'overloaded'

/**
 * The answer of {@link Inbox.handleNow}. `in-progress`: another process has the event. `closing`: the inbox closed
 * before the attempt ended.
 */
export type ImmediateResult = 'handled' | 'failed' | 'duplicate' | 'in-progress' | 'overloaded' | 'closing'

/** The run of a handler, as its transaction sees it. */
export interface TransactionScope {
  /** The handler's name, which the transaction records as completed. */
  readonly handler: string
  /**
   * Aborted with a `WebhookError` when the run has to stop, or has failed. In that case the transaction is rolled back,
   * unless it is being committed. The run waits for that, so it must not take long.
   */
  readonly signal: AbortSignal
  /** Set to `true` by the inbox if its own storage failed, so that the attempt does not count as a failure of the handler. */
  storageFailed?: boolean
}

/**
 * The part of a handler's context that an inbox in a database adds.
 * @typeParam Client the connection that the writes go through
 */
export interface Transactional<Client> {
  /**
   * Runs `run` in a transaction of the inbox's database, and commits what it writes together with the record that this
   * handler has completed: both or neither, and only if this process still holds the event. After that the handler never
   * runs again for this event. An error of `run`, an aborted signal or a lost lease rolls everything back. A handler can
   * call it once. What the handler does afterwards is not repeated if it fails.
   * @throws WebhookError `lease_lost`, `unavailable` when the database cannot be reached, or the signal's reason. Throws
   * `invalid_transaction` immediately, instead of rejecting, when it is called again or after the handler has ended
   */
  transaction<Result>(run: (client: Client) => MaybePromise<Result>): Promise<Result>
}

/** The run of a handler, which an operator can stop. */
export interface StoppableRun {
  /** The name of the handler. */
  readonly handler?: string
  /** Aborts the handler's signal with the error and ends the run with it, as if its time was up. */
  expire(error: Error): void
}

/** What a parked attempt waits for: the limit of a handler. */
export interface ParkedRun {
  /** The handler's name. */
  readonly handler: string
  /** Called once the attempt has its place among the running ones again. */
  resume(): void
  /** Called when the attempt is aborted. `resume` may follow. */
  abandon(): void
}

/** One attempt at an event: every handler that has not succeeded yet runs once. */
export interface Attempt {
  /** 1 for the first attempt. */
  readonly number: number
  /** Names of the handlers that succeeded in an earlier attempt. */
  readonly completed: readonly string[]
  /**
   * The failures of the last attempt that failed. The handlers whose failure is `final` do not run. Absent if there was
   * none, or the inbox does not keep them; then all handlers that have not completed run.
   */
  readonly failures?: readonly HandlerFailure[] | undefined
  /**
   * The number of earlier attempts with the same number: the inbox's storage failed in them. Each makes the next delay
   * longer.
   */
  readonly uncounted?: number | undefined
  /** `true` once the handling must stop: the inbox gave up on it when it closed, or the lease was lost. */
  readonly aborted: boolean
  /** Aborted at the same moment. An inbox can create it on the first read, when a handler asks for it. */
  readonly signal: AbortSignal
  /** Set by the receiver while a handler runs. */
  run?: StoppableRun | undefined
  /** Records that a handler succeeded while others are still to run. Absent if the record would not survive a crash. */
  readonly succeeded?: ((handler: string) => MaybePromise<void>) | undefined
  /**
   * `true` if another process has handlers that the event owes and this one lacks. Then, unless a handler fails, the
   * result is `retry` without failures, and `counts` is `false`.
   */
  readonly isPartial?: boolean | undefined
  /**
   * Returns `true` for a handler that is paused. The attempt leaves it out, and is partial if it still has to run. Absent if
   * the inbox has no pauses.
   */
  readonly isPaused?: ((handler: string) => boolean) | undefined
  /**
   * Gives up the attempt's slot while a handler is at its limit. The event keeps its lane, so later events of its media item wait
   * behind it. A pause of the handler and an abort end the wait. Returns `false` if too many attempts wait: this one then leaves
   * the handler out and, unless another handler fails, ends with `retry`, no failures, `counts: false` and the time until its turn
   * as `delayMs`. Absent if attempts can't wait.
   */
  readonly park?: ((run: ParkedRun) => boolean) | undefined
  /** Calls `resume` of the parked run as soon as there is a place. A no-op if it is not parked. */
  readonly unpark?: (() => void) | undefined
  /**
   * `true` if the event was accepted without a handler, for an expectation. A process without that rule has nothing to
   * do. Absent if the inbox does not know.
   */
  readonly owesNothing?: boolean | undefined
  /**
   * Runs `run` in a transaction of the inbox's database. What it writes is committed together with the record that the
   * handler has completed, if this process still holds the event. Otherwise it is rolled back, and the promise rejects.
   * Called at most once for a run of a handler. Absent if the inbox has no database.
   */
  readonly transaction?:
    | (<Result>(scope: TransactionScope, run: (client: never) => MaybePromise<Result>) => Promise<Result>)
    | undefined
}

/** The result of an attempt, which tells the inbox what to do next. */
export type AttemptResult =
  | { readonly status: 'done' }
  | {
      /** The handlers that have not completed run again after `delayMs`, except those whose failure is `final`. */
      readonly status: 'retry'
      readonly delayMs: number
      readonly completed: readonly string[]
      /** Empty if no handler failed, because the attempt was aborted or partial. */
      readonly failures: readonly HandlerFailure[]
      /**
       * `false` if the inbox's own storage failed, or if handlers were left out and none failed: the next attempt has the
       * same number.
       */
      readonly counts?: false | undefined
    }
  | {
      /** No attempts are left: the event becomes a dead letter. */
      readonly status: 'dead'
      readonly completed: readonly string[]
      readonly failures: readonly HandlerFailure[]
    }

/** Runs the handlers of an event. Never rejects. */
export type Handle = (accepted: AcceptedEvent, attempt: Attempt) => Promise<AttemptResult>

/**
 * Parses an unreadable delivery again. Throws or rejects, with a WebhookError `malformed`, if it still cannot be
 * parsed.
 */
export type ParseUnreadable = (unreadable: UnreadableDelivery) => MaybePromise<MediaEvent>

/** An event that was accepted and not finished when the inbox closed. */
export interface UnfinishedEvent extends AcceptedEvent {
  /**
   * Not started, with its handlers running, or failed and waiting for the next attempt. `running` too if its handlers have
   * ended and the inbox could not record that: they may run again.
   */
  readonly state: 'waiting' | 'running' | 'retrying'
}

/** The result of closing. */
export interface CloseReport {
  /**
   * Empty after a clean close. A memory inbox loses these events; a durable one handles them when it is next opened.
   */
  readonly unfinished: readonly UnfinishedEvent[]
}

/** The options of {@link Inbox.close}. */
export interface CloseOptions {
  /**
   * Maximum time that it takes, in ms. If the storage is unreachable, it can take half a second longer.
   * @defaultValue 10_000
   */
  readonly timeoutMs?: number
}

/** The options of {@link Inbox.accept}. */
export interface AcceptOptions {
  /**
   * Keeps the runtime alive until the promise resolves. Called by an inbox whose handlers the end of the process cuts
   * off.
   */
  readonly waitUntil?: ((promise: Promise<unknown>) => void) | undefined
}

/**
 * Keeps accepted events until their handlers have finished. `testing` has the contract suite that every inbox passes.
 */
export interface Inbox extends ReadableInbox {
  /**
   * Stores the event, or says that it is a duplicate, in one atomic step. Throws or rejects when it cannot tell, with a
   * WebhookError `in_progress` if another process has claimed the event and may not have stored it yet.
   */
  accept(accepted: AcceptedEvent, options?: AcceptOptions): MaybePromise<Acceptance>
  /**
   * Accepts the event, makes one attempt and returns its result; a duplicate that arrives in the meantime gets the same
   * result. After a failure the event's key is released, so that the sender's retry is handled. `ack: 'handled'` needs
   * this method.
   */
  handleNow?(accepted: AcceptedEvent): Promise<ImmediateResult>
  /**
   * Handles an event that a queue delivers. Present if the inbox hands its events over to one. Rejects
   * only for an invalid attempt.
   * @param message what the inbox gave the queue: the object, or its JSON as text or bytes
   */
  handleMessage?(message: unknown, options?: MessageOptions): Promise<MessageResult>
  /**
   * Keeps an unreadable delivery among the dead letters, the newest ones of them, so that it can be read, and replayed
   * once a version that can parse it is deployed if the inbox outlives the process. Absent if nothing can be kept.
   */
  keepUnreadable?(unreadable: UnreadableDelivery): MaybePromise<void>
  /**
   * Resolves once the inbox can accept. Absent if it can from the start.
   * @throws WebhookError `unavailable` when it cannot be opened
   */
  ready?(): Promise<void>
  /**
   * Makes every retry due now, and goes on accepting: the process is about to end. Absent if other processes can retry.
   */
  retryNow?(): void
  /** Stops accepting, finishes what it can in time, and reports the rest. Safe to call again. */
  close(options?: CloseOptions): Promise<CloseReport>
}

/** The reports that an inbox gets from the receiver that opened it, to record its activity. */
export interface ActivityObserver {
  /** Called after each delivery. `outcome` is `accepted`, `duplicate`, `ignored`, `test` or the reason of a rejection. */
  delivery(report: { readonly outcome: string; readonly status: number; readonly durationMs: number }): void
  /** Called after each attempt at an event. `sinceReceivedMs` is the time since its delivery was received. */
  attempt(report: { readonly outcome: string; readonly sinceReceivedMs: number }): void
  /** Called after each run of a handler that failed, with its name. */
  failed?(handler: string): void
}

/** A handler as other processes know it. */
export interface HandlerName {
  readonly name: string
  /** The event types that it handles. Absent if it handles every type. */
  readonly types?: readonly string[] | undefined
}

/** The order of a media item's events: see `order` of the receiver. */
export type EventOrder = 'loose' | 'strict'

/** The receiver that opens an inbox, as the inbox sees it. */
export interface InboxHost {
  /** Runs the handlers of an event. */
  readonly handle: Handle
  /** Returns the names of the handlers of an event, in the order in which they run. */
  readonly handlersOf: (event: MediaEvent) => readonly string[]
  /** Returns all handlers: the same array until one is added or removed. */
  readonly handlers: () => readonly HandlerName[]
  /**
   * Returns the effects of an accepted event on expectations. `undefined` if it has none. Absent in a host without
   * rules.
   */
  readonly expectations?: (accepted: AcceptedEvent) => ExpectationChanges | undefined
  /** Parses an unreadable delivery again, for its replay. */
  readonly parse: ParseUnreadable
  /**
   * `strict`: no event starts while an earlier one of its media item is retrying, in this process or another.
   * @defaultValue 'loose'
   */
  readonly order?: EventOrder | undefined
  /** Never throws. */
  readonly logger: Logger
  /** Tells the observer of each delivery, each attempt and each failed run of the receiver, in this process. */
  observe(observer: ActivityObserver): void
  /**
   * Takes the duration of a step in the inbox's storage, in ms, and its error if it failed. Absent without telemetry.
   * @param step what was done, such as `claim` or `commit`: one of a few words
   */
  readonly measured?: ((step: string, durationMs: number, error?: unknown) => void) | undefined
}

/**
 * The place in which an inbox keeps accepted events: in the process's memory, in a file of its machine, or in a database
 * that other processes reach. `handed-over`: to a queue or an object that also starts their handling, so that this
 * process need not stay alive.
 */
export type InboxStorage = 'memory' | 'file' | 'database' | 'handed-over'

/** The result of {@link Inbox.handleMessage}, which tells the queue what to do with the message. */
export type MessageResult =
  /** The event is handled, or was handled before. The queue deletes the message. */
  | { readonly status: 'done' }
  /** The queue delivers the message again, after `delayMs` if it can wait. */
  | { readonly status: 'retry'; readonly delayMs: number }
  /** No attempts are left. The queue moves the message to its dead letters. */
  | { readonly status: 'dead'; readonly failures: readonly HandlerFailure[] }

/** The options of {@link Inbox.handleMessage}. */
export interface MessageOptions {
  /**
   * The number of times that the queue has delivered the message, this time included. Each is taken for the first if the
   * queue does not count.
   * @defaultValue 1
   */
  readonly attempt?: number | undefined
}

/**
 * An inbox that a receiver can open. `memoryInbox()`, `sqliteInbox({ path })` and the others make one.
 * @typeParam Additions the type of what the inbox adds to the context of the handlers, such as `{ transaction }`
 */
export interface InboxDefinition<out Additions = unknown> {
  /** The name of the inbox in error messages. */
  readonly name: string
  /** `true` if the inbox has {@link Inbox.handleNow}, so that it works with `ack: 'handled'`. */
  readonly handlesNow?: boolean
  /** The place where accepted events are kept. Absent if it is not known. */
  readonly storage?: InboxStorage
  /** `true` if event keys are remembered in this process only, so that two processes can handle one event. */
  readonly localKeys?: boolean | undefined
  /** `true` if the inbox keeps expectations, so that `receiver.expect` works. */
  readonly expects?: boolean | undefined
  /** `true` if the inbox can keep a strict order: see {@link InboxHost.order}. */
  readonly ordersStrictly?: boolean | undefined
  /** `true` if attempts can wait for the limit of a handler, so that `concurrency` and `rate` of `on` work. */
  readonly limits?: boolean | undefined
  /** `true` if the work of handlers continues between requests, even on Workers. */
  readonly outlivesRequests?: boolean
  /** Never set: it carries the type parameter. */
  readonly additions?: Additions
  /**
   * Opens the inbox, which starts to handle events immediately. The receiver calls it once.
   * @throws WebhookError `invalid_option` the second time, `unavailable` when the inbox cannot be opened
   */
  open(host: InboxHost): Inbox
}
