import type { MediaEvent } from '../events/media-service/catalogue.ts'
import type { MaybePromise } from '../internal/maybe-promise.ts'

// What an inbox answers about its events, and the operations on them.

/** A handler that failed, and why. */
export interface HandlerFailure {
  readonly handler: string
  readonly message: string
  /** Your own code's frames of the error's stack, up to 10 lines and 1,500 characters. Newest failed attempt only. */
  readonly stack?: string | undefined
  /** `true` if retries skip this handler: only a replay runs it again. Later failed attempts repeat this failure. */
  readonly final?: true | undefined
}

/** A verified delivery that could not be parsed. Its other headers are dropped: they contain secrets. */
export interface UnreadableDelivery {
  readonly reason: string
  readonly receivedAt: Date
  /** The id that the verifier vouches for, or the header that `eventKey` names. */
  readonly eventId: string | undefined
  readonly principal?: string | undefined
  /** The headers that `read` or `eventKey` asks for, by lower-case name. `null` for one that was missing. */
  readonly headers?: Readonly<Record<string, string | null>> | undefined
  /** Without the verifier's token, if an `eventKey` function asks for the URL. */
  readonly url?: string | undefined
  readonly trace?: TraceCarrier | undefined
  /** The bytes as sent. If another parser consumed them, JSON written from the parsed body. */
  readonly body: Uint8Array
}

/** An attempt in which a handler failed. */
export interface FailedAttempt {
  /** Starts at 1, and again at 1 after a replay. */
  readonly number: number
  /** `handler` is `none` if no handler ran. */
  readonly failures: readonly HandlerFailure[]
  readonly failedAt: Date
}

/** Trace context of a delivery (`traceparent`, …), stored with the event so that later runs join the trace. */
export type TraceCarrier = Readonly<Record<string, string>>

/** An event that could not be handled, or a delivery that could not be parsed. */
export interface DeadLetter {
  /** The event's key. For an unreadable delivery, a hash of what it kept. */
  readonly key: string
  /** `undefined` for an unreadable delivery. */
  readonly event: MediaEvent | undefined
  readonly unreadable?: UnreadableDelivery | undefined
  readonly receivedAt: Date
  readonly attempts: number
  /** Handlers that succeeded. */
  readonly completed: readonly string[]
  /** Failures of the last attempt, and final ones of earlier attempts. `handler` is `none` if no handler ran. */
  readonly failures: readonly HandlerFailure[]
  /** The newest 20 failed attempts, oldest first. Absent if the inbox doesn't keep them. */
  readonly failedAttempts?: readonly FailedAttempt[] | undefined
  readonly diedAt: Date
  readonly trace?: TraceCarrier | undefined
}

/** A dead letter that is an event. */
export interface DeadEvent extends DeadLetter {
  readonly event: MediaEvent
}

/** The dead letters of an inbox, newest first. */
export interface DeadLetters {
  /** Lists `limit` dead letters (100 by default) after the first `offset` (0). */
  list(options?: { readonly limit?: number; readonly offset?: number }): MaybePromise<readonly DeadLetter[]>
  get(key: string): MaybePromise<DeadLetter | undefined>
  /**
   * Runs the handlers that have not completed, with fresh attempts; parses an unreadable delivery first. Returns
   * `false` if there is no such dead letter.
   * @throws WebhookError `in_progress`, `overloaded` or `closing` if the event can't be accepted now, `malformed` if
   * the delivery still can't be parsed: the dead letter stays
   */
  replay(key: string): MaybePromise<boolean>
  /** Deletes the dead letter for good. Returns `false` if there is none. */
  discard(key: string): MaybePromise<boolean>
  /**
   * Replays the current dead letters, oldest first. Waits while the inbox is full. A delivery that still can't be
   * parsed stays, counted as `kept`.
   * @throws WebhookError `invalid_option`, or `closing` or `unavailable` when the inbox stops accepting; the rest is
   * kept
   */
  replayAll?(options?: ReplayAllOptions): Promise<ReplayReport>
}

/** The options of {@link InspectedDeadLetters.keys}. */
export interface KeysOptions {
  /** Only events of this type; no unreadable deliveries. */
  readonly type?: string | undefined
  /** Only dead letters from this time on. */
  readonly since?: Date | undefined
}

/** The dead letters of an inspected inbox. */
export interface InspectedDeadLetters extends DeadLetters {
  /** Lists keys, oldest first, optionally filtered by type or time. */
  keys(options?: KeysOptions): Promise<readonly string[]>
  /**
   * Replays dead letters, many per commit, and returns their keys. Running receivers handle them, or the next to open
   * the inbox. An unreadable delivery is returned too, yet stays if it still can't be parsed.
   */
  replayMany(keys: readonly string[]): Promise<readonly string[]>
  /** Deletes dead letters for good, and returns the keys of those deleted. */
  discardMany(keys: readonly string[]): Promise<readonly string[]>
  replayAll(options?: ReplayAllOptions): Promise<ReplayReport>
}

/** The options of {@link DeadLetters.replayAll}. */
export interface ReplayAllOptions {
  /** Only events of this type; no unreadable deliveries. */
  readonly type?: string
  /** Only dead letters from this time on. */
  readonly since?: Date
  /**
   * Rate limit (dead letters per second), so that what failed under load doesn't fail again.
   * @defaultValue 100
   */
  readonly perSecond?: number
  /** Called after each dead letter. */
  readonly onProgress?: (report: ReplayReport) => void
  /** Stops the replay. The promise then resolves with what was done. */
  readonly signal?: AbortSignal
}

/** Progress or result of a replay. */
export interface ReplayReport {
  /** Dead letters that match the options. */
  readonly total: number
  readonly replayed: number
  /** Those already gone, or still unparsable. */
  readonly kept: number
}

/** Events in an inbox, by state. */
export interface InboxStats {
  readonly waiting: number
  readonly running: number
  readonly retrying: number
  /** Includes unreadable deliveries. */
  readonly deadLetters: number
  /** Open expectations. Absent if there are none. */
  readonly expected?: number | undefined
  /** Since when the oldest waiting event has waited: received, replayed or due. Absent if none waits, or unknown. */
  readonly oldestWaitingAt?: Date | undefined
}

/** `waiting`: accepted, not started. `retrying`: waiting for its next attempt. `dead`: a dead letter. */
export type EventState = 'waiting' | 'running' | 'retrying' | 'dead' | 'handled'

/** Outcomes in the order of the keys. `open`: waiting, running or retrying. */
export type EventOutcomes = readonly ('open' | 'dead' | 'handled' | undefined)[]

/** An event, as its inbox knows it. */
export interface EventRecord {
  readonly key: string
  readonly type: string
  readonly mediaId: string
  readonly state: EventState
  /** Absent once handled: the payload is not kept. */
  readonly event?: MediaEvent | undefined
  /** The types an overdue event waited for: any would have done. Absent otherwise. */
  readonly awaited?: readonly string[] | undefined
  readonly receivedAt: Date
  /** Attempts started. */
  readonly attempts: number
  /** Handlers that succeeded. */
  readonly completed: readonly string[]
  /**
   * Handlers still to run. A `retrying` event without a failure waits for handlers that are paused, or that this
   * process lacks. Absent if not stored, and once the event has ended.
   */
  readonly owed?: readonly string[] | undefined
  /** The newest 20 failed attempts, oldest first. */
  readonly failedAttempts: readonly FailedAttempt[]
  /** Due time of the next attempt. Only while `retrying`. */
  readonly dueAt?: Date | undefined
  /** When the attempt started, by the clock of its process. Only while `running`, if the inbox knows. */
  readonly startedAt?: Date | undefined
  /** The running handler. Only while `running` in this process. */
  readonly handler?: string | undefined
  /** Host and pid of the process running it, such as `web-1:4711`. Only while `running`, if the inbox knows. */
  readonly process?: string | undefined
  readonly endedAt?: Date | undefined
  /** Trace context of its delivery, if the inbox still has it. */
  readonly trace?: TraceCarrier | undefined
}

/** The options of {@link InboxEvents.list}. */
export interface EventQuery {
  readonly state?: EventState
  readonly type?: string
  readonly mediaId?: string
  /** @defaultValue 'newest', by time of acceptance */
  readonly order?: 'newest' | 'oldest'
  /** @defaultValue 100 */
  readonly limit?: number
  /** The previous page's `cursor`. Repeat the other options. */
  readonly cursor?: string
}

/** A page of events. */
export interface EventPage {
  readonly events: readonly EventRecord[]
  /** Present if there may be more. Even a short or empty page can have one: a page scans a bounded number of events. */
  readonly cursor?: string | undefined
}

/** The events of an inbox, even while it handles them. Unreadable deliveries are only among the dead letters. */
export interface InboxEvents {
  /** The states in which the inbox knows events. Without `handled`, a handled event is gone. */
  readonly states: readonly EventState[]
  /**
   * Lists events.
   * @throws WebhookError `invalid_option` for an invalid state, limit or cursor
   */
  list(query?: EventQuery): MaybePromise<EventPage>
  get(key: string): MaybePromise<EventRecord | undefined>
  /** Outcomes of up to 1,000 events. `undefined` for an unknown event. */
  outcomes(keys: readonly string[]): MaybePromise<EventOutcomes>
  /** Starts an event's next attempt now. Returns `false` if the event isn't `retrying`. */
  retryNow(key: string): MaybePromise<boolean>
  /**
   * Stops an event's running handler: its signal aborts with a `stopped` error and the run fails, like a timeout; a
   * retry or a dead letter follows. A handler that ignores its signal keeps running in the background. Returns `false`
   * if no process in reach runs a handler for the event. Absent if none can be reached.
   */
  stop?(key: string): MaybePromise<boolean>
}

/** One minute of activity of a receiver, or of all receivers of an inbox. */
export interface ActivityMinute {
  readonly startedAt: Date
  readonly accepted: number
  readonly duplicates: number
  /** Deliveries acknowledged but not kept: no handler for their type. */
  readonly ignored: number
  /** Deliveries answered with anything but 200. */
  readonly rejected: number
  readonly handled: number
  /** Attempts in which a handler failed. */
  readonly failed: number
  /** Rejected deliveries by reason, such as `unauthorized`. Absent if not recorded. */
  readonly rejectedBy?: Readonly<Record<string, number>> | undefined
  /** Failed runs by handler: per process and minute the first 20, the rest as `others`. Absent if not recorded. */
  readonly failedBy?: Readonly<Record<string, number>> | undefined
  /** Time to acknowledge a delivery, accepted or duplicate. */
  readonly acknowledgement: Durations
  /** Time from receipt to handled. */
  readonly handling: Durations
}

/** A histogram: counts per bucket of `durationBounds` (ms). The last bucket has everything above. */
export type Durations = readonly number[]

/** An open expectation: not ended, not overdue. */
export interface OpenExpectation {
  readonly rule: string
  readonly mediaId: string
  /** Time of the event that began it. */
  readonly beganAt: Date
  readonly dueAt: Date
}

/** A pause of the whole inbox or one handler. */
export interface Pause {
  /** The paused handler. Absent: the whole inbox. */
  readonly handler?: string | undefined
  readonly since: Date
  readonly by?: string | undefined
}

/** The options of {@link Pauses.resume}. */
export interface ResumeOptions {
  /**
   * A handler's name. No process needs to have it yet.
   * @defaultValue the whole inbox
   */
  readonly handler?: string | undefined
}

/** The options of {@link Pauses.pause}. */
export interface PauseOptions extends ResumeOptions {
  /** Who asks for it, shown to others. */
  readonly by?: string | undefined
}

/**
 * The pauses of an inbox, stored with its events. They survive restarts, and every process obeys them within about two
 * seconds. A paused inbox accepts deliveries and finishes running attempts, but starts none. A paused handler is
 * skipped: the event's other handlers run, and it is retried without counting an attempt, after 1 s to 60 s depending
 * on its age.
 */
export interface Pauses {
  /** Lists the pauses, oldest first. */
  list(): MaybePromise<readonly Pause[]>
  /**
   * Pauses the inbox or a handler. Returns `false` if it already is: the old pause stays.
   * @throws WebhookError `invalid_option`
   */
  pause(options?: PauseOptions): MaybePromise<boolean>
  /**
   * Resumes the inbox or a handler. Returns `false` if it is not paused.
   * @throws WebhookError `invalid_option`
   */
  resume(options?: ResumeOptions): MaybePromise<boolean>
  /** Names this process's handlers. Absent if unknown. */
  handlers?(): readonly string[]
}

/** Something an operator did. */
export interface Operation {
  readonly at: Date
  readonly by?: string | undefined
  readonly act: 'replay' | 'discard' | 'retry' | 'stop' | 'pause' | 'resume'
  readonly count?: number | undefined
  /** The handler paused or resumed. Absent: the whole inbox. */
  readonly handler?: string | undefined
  /** The cause of the dead letters, as the dashboard names it. */
  readonly cause?: string | undefined
  readonly reason?: string | undefined
  /** The dashboard's bulk action that carried it out. */
  readonly bulkAction?: string | undefined
}

/** An operation to store, with the keys of its events. Without `count`, the keys are counted. */
export interface NewOperation extends Omit<Operation, 'at'> {
  /** @defaultValue now */
  readonly at?: Date
  readonly keys?: readonly string[] | undefined
}

/** The options of {@link Operations.list}. */
export interface OperationQuery {
  /** Only operations on the event with this key. An operation on more than 500 events stores the first 500 keys. */
  readonly key?: string | undefined
  /** @defaultValue 100 */
  readonly limit?: number | undefined
}

/** An inbox's audit log: the newest 500 operations. */
export interface Operations {
  add(operation: NewOperation): MaybePromise<void>
  /** Newest first. */
  list(query?: OperationQuery): MaybePromise<readonly Operation[]>
}

/** The operator's side of an inbox. */
export interface ReadableInbox {
  stats(): MaybePromise<InboxStats>
  readonly deadLetters: DeadLetters
  /** Absent if the inbox can't list its events. */
  readonly events?: InboxEvents | undefined
  /**
   * Returns a media item's newest 1,000 events, in order of acceptance. With `handled` among `events.states`, nothing
   * is missing for as long as event keys are remembered.
   */
  history?(mediaId: string): MaybePromise<readonly EventRecord[]>
  /** Lists the `limit` (100 by default) open expectations due first. Absent if the inbox keeps none. */
  expected?(limit?: number): MaybePromise<readonly OpenExpectation[]>
  /** Returns the minutes since then with any activity, oldest first. Kept for 24 h. Absent if not recorded. */
  activity?(since: Date): MaybePromise<readonly ActivityMinute[]>
  /** Absent if the inbox can't store a pause. */
  readonly pauses?: Pauses | undefined
  /** Absent if the inbox can't store operations. */
  readonly operations?: Operations | undefined
}

/**
 * An inbox opened to count, list, replay, discard, retry and pause, while receivers may be handling its events. It
 * handles nothing itself. Receivers obey pauses within two seconds and write their activity every 5 s.
 */
export interface InspectedInbox extends ReadableInbox {
  readonly deadLetters: InspectedDeadLetters
  readonly events: InboxEvents
  history(mediaId: string): Promise<readonly EventRecord[]>
  expected(limit?: number): MaybePromise<readonly OpenExpectation[]>
  activity(since: Date): Promise<readonly ActivityMinute[]>
  readonly pauses: Pauses
  readonly operations: Operations
  /** Closes what was opened for it. A pool that you passed in stays open. */
  close(): MaybePromise<void>
}
