import type { MediaEvent } from '../events/media-service/catalogue.ts'
import type { MaybePromise } from '../internal/maybe-promise.ts'

// The answers of an inbox about its events, and the operations on them.

/** A handler that failed, and the message of its error. */
export interface HandlerFailure {
  /** The handler's name. */
  readonly handler: string
  /** The message of the error that it threw. */
  readonly message: string
  /**
   * The calls of your own code in the error's stack: at most ten lines and 1,500 characters. Kept of the newest attempt
   * that failed, in `failedAttempts`.
   */
  readonly stack?: string | undefined
  /**
   * `true` if the event is retried without this handler, which runs again only if the event is replayed. Each later attempt
   * that fails names it again.
   */
  readonly final?: true | undefined
}

/**
 * A delivery that passed verification and could not be parsed. Neither URL nor other headers are kept: they contain secrets.
 */
export interface UnreadableDelivery {
  /** The reason why it could not be parsed. */
  readonly reason: string
  /** The time at which the delivery was received. */
  readonly receivedAt: Date
  /** The id that the verifier vouches for, or the value of the header that `eventKey` names. */
  readonly eventId: string | undefined
  /** The principal that the verifier named. */
  readonly principal?: string | undefined
  /** The headers that the sender's `read` asks for, such as one with the type. */
  readonly headers?: Readonly<Record<string, string>> | undefined
  /** The bytes as sent, or JSON written from the parsed body if another parser had consumed them. */
  readonly body: Uint8Array
}

/** An attempt at an event in which a handler failed. */
export interface FailedAttempt {
  /** 1 for the first attempt. It begins at 1 again after a replay. */
  readonly number: number
  /** The handlers that failed. `handler` is `none` if no handler ran. */
  readonly failures: readonly HandlerFailure[]
  /** The time at which the attempt ended. */
  readonly failedAt: Date
}

/**
 * The trace that an event's delivery belongs to, as headers such as `traceparent`. It is stored with the event, so that
 * handlers which run later, or in another process, belong to that trace.
 */
export type TraceCarrier = Readonly<Record<string, string>>

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
  /**
   * The handlers that failed in the last attempt, and those that failed in an earlier one and were not to run again.
   * `handler` is `none` if no handler ran.
   */
  readonly failures: readonly HandlerFailure[]
  /** The newest 20 attempts that failed, oldest first. Absent if the inbox does not keep them. */
  readonly failedAttempts?: readonly FailedAttempt[] | undefined
  /** The time at which it became a dead letter. */
  readonly diedAt: Date
  /** The trace of its delivery, if there was one. */
  readonly trace?: TraceCarrier | undefined
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
   * delivery still cannot be parsed: the dead letter is kept
   */
  replay(key: string): MaybePromise<boolean>
  /** Deletes the dead letter permanently. Returns `false` if no dead letter has that key. */
  discard(key: string): MaybePromise<boolean>
  /**
   * Replays the dead letters that there are now, oldest first, those of a type or a time if you name one. While the inbox
   * is full it waits. An unreadable delivery that still cannot be parsed stays, and counts as kept.
   * @throws WebhookError `invalid_option`, or `closing` or `unavailable` when the inbox can take no more; the rest is kept
   */
  replayAll?(options?: ReplayAllOptions): Promise<ReplayReport>
}

/** The options of {@link InspectedDeadLetters.keys}. */
export interface KeysOptions {
  /** Lists only events of this type, and no unreadable deliveries. */
  readonly type?: string | undefined
  /** Lists only what became a dead letter at this time or later. */
  readonly since?: Date | undefined
}

/** The dead letters of an inbox that was opened to inspect it. */
export interface InspectedDeadLetters extends DeadLetters {
  /** Lists the keys of all dead letters, or of those of a type or a time, oldest first. */
  keys(options?: KeysOptions): Promise<readonly string[]>
  /**
   * Replays the dead letters with those keys, many in a commit, and returns the keys of the replayed ones. Running receivers
   * handle them, or the next one that opens the inbox. A receiver also parses unreadable deliveries again; one that still
   * cannot be parsed stays, although it is returned here.
   */
  replayMany(keys: readonly string[]): Promise<readonly string[]>
  /** Deletes the dead letters with those keys permanently, and returns the keys of the deleted ones. */
  discardMany(keys: readonly string[]): Promise<readonly string[]>
  replayAll(options?: ReplayAllOptions): Promise<ReplayReport>
}

/** The options of {@link DeadLetters.replayAll}. */
export interface ReplayAllOptions {
  /** Replays only events of this type, and no unreadable deliveries. */
  readonly type?: string
  /** Replays only what became a dead letter at this time or later. */
  readonly since?: Date
  /**
   * Maximum number that are replayed in a second, so that what failed under load does not fail again.
   * @defaultValue 100
   */
  readonly perSecond?: number
  /** Called after each one. */
  readonly onProgress?: (report: ReplayReport) => void
  /** Stops the replay when it is aborted. The promise then resolves with what was done. */
  readonly signal?: AbortSignal
}

/** The number of dead letters of a replay. */
export interface ReplayReport {
  /** The number of dead letters that match the options. */
  readonly total: number
  readonly replayed: number
  /** The number of those that were gone by then, or could not be parsed again. */
  readonly kept: number
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
  /** Expectations that are open. Absent if there are none. */
  readonly expected?: number | undefined
  /**
   * The time since which the oldest event that waits to start has waited: since the receipt of its delivery, or since its
   * replay or the time of its retry, if the inbox knows it. Absent if no event waits, or if it is not known.
   */
  readonly oldestWaitingAt?: Date | undefined
}

/**
 * The state of an event in an inbox: accepted and not started, with its handlers running, waiting for its next attempt, a
 * dead letter, or handled.
 */
export type EventState = 'waiting' | 'running' | 'retrying' | 'dead' | 'handled'

/** What became of events, in the order of the keys that were asked for. An `open` one waits, runs or is retried. */
export type EventOutcomes = readonly ('open' | 'dead' | 'handled' | undefined)[]

/** An event as its inbox knows it. */
export interface EventRecord {
  readonly key: string
  readonly type: string
  readonly mediaId: string
  readonly state: EventState
  /** Absent once the event was handled: its payload is not kept. */
  readonly event?: MediaEvent | undefined
  /** Of an overdue event, the types of which one was awaited. Absent for the event of a delivery. */
  readonly awaited?: readonly string[] | undefined
  /** The time at which its delivery was received. */
  readonly receivedAt: Date
  /** The number of attempts that have started. */
  readonly attempts: number
  /** Names of the handlers that succeeded. */
  readonly completed: readonly string[]
  /**
   * Names of the handlers that still have to run. While it is `retrying` without a failure, this process lacks them, or they
   * are paused. Absent if the inbox does not store them, and once the event has ended.
   */
  readonly owed?: readonly string[] | undefined
  /** The newest 20 attempts that failed, oldest first. */
  readonly failedAttempts: readonly FailedAttempt[]
  /** The time of the next attempt. Only while it is `retrying`. */
  readonly dueAt?: Date | undefined
  /**
   * The time since which its attempt has been running, by the clock of its process. Only while it is `running`, and absent
   * if the inbox does not know.
   */
  readonly startedAt?: Date | undefined
  /** The handler that runs. Only while it is `running` in this process. */
  readonly handler?: string | undefined
  /** The host and the pid that run its handlers, such as `web-1:4711`. Only while it is `running`, if the inbox knows. */
  readonly process?: string | undefined
  /** The time at which it was handled, or became a dead letter. */
  readonly endedAt?: Date | undefined
  /** The trace of its delivery, if there was one and the inbox still has it. */
  readonly trace?: TraceCarrier | undefined
}

/** The options of {@link InboxEvents.list}. */
export interface EventQuery {
  /** Lists only events in this state. */
  readonly state?: EventState
  /** Lists only events of this type. */
  readonly type?: string
  /** Lists only events of this media item. */
  readonly mediaId?: string
  /**
   * By the time of acceptance.
   * @defaultValue 'newest'
   */
  readonly order?: 'newest' | 'oldest'
  /**
   * Maximum number of events of a page.
   * @defaultValue 100
   */
  readonly limit?: number
  /** The `cursor` of the page before, for the next one. The other options have to be the same. */
  readonly cursor?: string
}

/** A page of events. */
export interface EventPage {
  readonly events: readonly EventRecord[]
  /**
   * Present if there may be more events. In that case the page can be shorter than `limit`, or even empty: an inbox
   * reads a bounded number of events for a page, and few of them may match.
   */
  readonly cursor?: string | undefined
}

/** The events of an inbox, also while it handles them. Unreadable deliveries are only among the dead letters. */
export interface InboxEvents {
  /** The states that it knows events in. Without `handled`, an event is gone once it is handled. */
  readonly states: readonly EventState[]
  /**
   * Lists events.
   * @throws WebhookError `invalid_option` for an invalid state, limit or cursor
   */
  list(query?: EventQuery): MaybePromise<EventPage>
  /** Returns the event with that key, or `undefined`. */
  get(key: string): MaybePromise<EventRecord | undefined>
  /** Returns what became of each of up to 1,000 events. `undefined` for one that it does not know. */
  outcomes(keys: readonly string[]): MaybePromise<EventOutcomes>
  /** Starts the next attempt of an event immediately. Returns `false` if no event with that key waits for one. */
  retryNow(key: string): MaybePromise<boolean>
  /**
   * Stops the handler that runs for an event: its signal aborts with a `stopped` error, and its run fails, as if its time
   * was up. The event is retried by its schedule, or becomes a dead letter. A handler that ignores its signal goes on in
   * the background. Returns `false` if no handler runs for an event with that key, in a process that the inbox can reach.
   * Absent if it can reach none.
   */
  stop?(key: string): MaybePromise<boolean>
}

/** The activity of a receiver, or of all the receivers of an inbox, in one minute. */
export interface ActivityMinute {
  /** The start of the minute. */
  readonly startedAt: Date
  /** Deliveries whose event was accepted. */
  readonly accepted: number
  readonly duplicates: number
  /** Deliveries that were acknowledged and not kept, since no handler is registered for their type. */
  readonly ignored: number
  /** Deliveries that were answered with anything but 200. */
  readonly rejected: number
  /** Events whose handlers have all succeeded. */
  readonly handled: number
  /** Attempts in which a handler failed. */
  readonly failed: number
  /** The rejected deliveries by reason, such as `unauthorized`. Absent if the inbox does not tell them apart. */
  readonly rejectedBy?: Readonly<Record<string, number>> | undefined
  /**
   * The runs that failed, by handler: of each process the first 20 in a minute, and the rest as `others`. Absent if the
   * inbox does not tell them apart.
   */
  readonly failedBy?: Readonly<Record<string, number>> | undefined
  /** Times from the call of the receiver to the acknowledgement of a delivery, accepted or duplicate. */
  readonly acknowledgement: Durations
  /** Times from the receipt of an event's delivery until it was handled. */
  readonly handling: Durations
}

/**
 * The number of durations up to each of `durationBounds`, in ms, and above the one before. The last number counts those
 * above all bounds.
 */
export type Durations = readonly number[]

/** An expectation that is open: no event has ended it, and its deadline has not passed. */
export interface OpenExpectation {
  /** The name of its rule. */
  readonly rule: string
  readonly mediaId: string
  /** The time of the event that began it. */
  readonly beganAt: Date
  readonly dueAt: Date
}

/** A pause of the whole inbox, or of one handler. */
export interface Pause {
  /** The name of the handler. Absent if the whole inbox is paused. */
  readonly handler?: string | undefined
  readonly since: Date
  /** The person or program that asked for it, if it gave a name. */
  readonly by?: string | undefined
}

/** The options of {@link Pauses.resume}. */
export interface ResumeOptions {
  /**
   * The name of a handler. A name that no process has is taken also: a process that starts later may have it.
   * @defaultValue the whole inbox
   */
  readonly handler?: string | undefined
}

/** The options of {@link Pauses.pause}. */
export interface PauseOptions extends ResumeOptions {
  /** The person or program that asks for it, for others to see. */
  readonly by?: string | undefined
}

/**
 * The pauses of an inbox. They are stored with its events: all processes obey them within about two seconds, and a restart
 * does not end them. While the whole inbox is paused, deliveries are accepted, running attempts finish, and no attempt
 * begins. While a handler is paused, attempts leave it out: the other handlers of the event run, and the event is tried
 * again, without counting an attempt, after a time that grows with its age, from 1 s to 60 s.
 */
export interface Pauses {
  /** Lists what is paused, the oldest pause first. */
  list(): MaybePromise<readonly Pause[]>
  /**
   * Pauses the inbox or a handler. Returns `false` if it is paused already, and changes nothing.
   * @throws WebhookError `invalid_option`
   */
  pause(options?: PauseOptions): MaybePromise<boolean>
  /**
   * Ends the pause of the inbox or of a handler. Returns `false` if it is not paused.
   * @throws WebhookError `invalid_option`
   */
  resume(options?: ResumeOptions): MaybePromise<boolean>
  /** Returns the names of the handlers of this process. Absent if the inbox does not know them. */
  handlers?(): readonly string[]
}

/** What an operator did. */
export interface Operation {
  readonly at: Date
  /** The person or program, if it gave a name. */
  readonly by?: string | undefined
  readonly act: 'replay' | 'discard' | 'retry' | 'stop' | 'pause' | 'resume'
  /** The number of events. */
  readonly count?: number | undefined
  /** The handler that was paused or resumed. Absent for the whole inbox. */
  readonly handler?: string | undefined
  /** The cause whose dead letters it was about, as the dashboard names it. */
  readonly cause?: string | undefined
  readonly reason?: string | undefined
  /** The job of the dashboard that carried it out. Its process knows what became of the events. */
  readonly job?: string | undefined
}

/** An operation to store, with the keys of its events. They are counted if `count` is absent. */
export interface NewOperation extends Omit<Operation, 'at'> {
  /** When it began: now, if it is absent. */
  readonly at?: Date
  readonly keys?: readonly string[] | undefined
}

/** The options of {@link Operations.list}. */
export interface OperationQuery {
  /** Lists only what was done to the event with this key. Of an operation on more than 500 events, the first 500 count. */
  readonly key?: string | undefined
  /**
   * Maximum number of operations.
   * @defaultValue 100
   */
  readonly limit?: number | undefined
}

/** What operators did to an inbox: its newest 500 operations. */
export interface Operations {
  /** Stores what an operator did. */
  add(operation: NewOperation): MaybePromise<void>
  /** Lists the newest first. */
  list(query?: OperationQuery): MaybePromise<readonly Operation[]>
}

/** The part of an inbox that operators use: what it has, and the outcome of its events. */
export interface ReadableInbox {
  /** Counts the events by state. */
  stats(): MaybePromise<InboxStats>
  /** Lists, replays and discards dead letters. */
  readonly deadLetters: DeadLetters
  /** Lists events, and retries them. Absent if the inbox cannot be asked. */
  readonly events?: InboxEvents | undefined
  /**
   * Returns the newest 1,000 events of a media item, in order of acceptance. If `events.states` has `handled`, they
   * are the whole story of the time for which event keys are remembered.
   */
  history?(mediaId: string): MaybePromise<readonly EventRecord[]>
  /** Lists the `limit` (100 by default) open expectations that are due first. Absent if the inbox keeps none. */
  expected?(limit?: number): MaybePromise<readonly OpenExpectation[]>
  /**
   * Returns the minutes since then in which something was done, oldest first, of all processes. The last 24 h are kept.
   * Absent if the inbox does not record it.
   */
  activity?(since: Date): MaybePromise<readonly ActivityMinute[]>
  /** Pauses and resumes the handling of events. Absent if the inbox cannot store a pause. */
  readonly pauses?: Pauses | undefined
  /** What operators did. Absent if the inbox cannot store it. */
  readonly operations?: Operations | undefined
}

/**
 * An inbox that was opened to inspect it, while receivers may handle its events: to count and list them, to replay and discard
 * dead letters, to retry events, and to pause. It handles nothing. Receivers obey pauses within two seconds, and write their
 * activity every 5 s.
 */
export interface InspectedInbox extends ReadableInbox {
  readonly deadLetters: InspectedDeadLetters
  readonly events: InboxEvents
  history(mediaId: string): Promise<readonly EventRecord[]>
  expected(limit?: number): MaybePromise<readonly OpenExpectation[]>
  activity(since: Date): Promise<readonly ActivityMinute[]>
  readonly pauses: Pauses
  readonly operations: Operations
  /** Closes what was opened for it. A pool that was given stays open. */
  close(): MaybePromise<void>
}
