import type { MaybePromise } from '../../internal/maybe-promise.ts'
import type { PublishedHandlers } from '../engine/owed-handlers.ts'
import type { Acceptance, HandlerName, TransactionScope } from '../inbox.ts'
import type { Signal } from './signal.ts'

// The port of the SQL inbox: what it needs of a database. The engine above it is the same for all.
//
// A lane is a row: the events of one media item, in order, which one process has at a time.
//
//   idle      Nobody has it, and nothing waits: `ready_at` is infinity.
//   ready     Nobody has it, and somebody should look once `ready_at` has come.
//   held      `owner` has it. `turn` counts claims: everything that is sent for an earlier one finds another number.
//   marked    `crashes` > 0: its owner died. One of its events may have been the cause, so they run alone and count first.
//
// An event's row, in a table with all others of the last day:
//
//   waiting   Beyond its lane's `position`, without a time.
//   retrying  Has a `due_at`: for a retry, a paused handler, a limit, or with `awaits` for handlers that only others have.
//   ended     Has an `ended_at`: handled, or discarded. Its payload is gone; the rest stays for as long as keys do.
//   dead      Has a `died_at`: a dead letter. With a `body`, and no event, an unreadable delivery.
//
// `ready_at` is the only sign that something is new. Accepting sets it to now, claiming to infinity. Releasing sets it to
// now if something came meanwhile, otherwise to when the next event is due. Nothing is counted, so nothing can drift.

/** A key, as the database stores it. */
export type Hash = string

/** A lane, or a media item that may have none yet. */
export type Media = string

/** What pages show of an event after its payload is gone. JSON. The key may be shortened: see `head.ts`. */
export type HeadJson = string

/**
 * One step of the inbox, to be run in a transaction of its own. Only the database that made it can run it.
 * @typeParam Result what it tells the engine
 */
export interface Step<out Result> {
  /** Never set: carries the type parameter. */
  readonly result?: Result
}

/** An event to store. Texts are JSON, times ms since the epoch. */
export interface NewEvent {
  readonly hash: Hash
  readonly media: Media
  readonly event: string
  readonly head: HeadJson
  readonly trace: string | undefined
  readonly receivedAt: number
  /** Names of the handlers it owes. `undefined` if an unreadable delivery was parsed when no handler matched. */
  readonly owed: string | undefined
  readonly changes: StoredChanges | undefined
}

/** An unreadable delivery to keep as a dead letter. */
export interface NewUnreadable {
  readonly hash: Hash
  /** JSON of its key and everything but the body. */
  readonly head: string
  readonly body: Uint8Array
}

/** How a new event changes expectations. A subject is a rule and a media item. */
export interface StoredChanges {
  /** The event's time. Also what begins and ends compare. */
  readonly at: number
  readonly begins: readonly StoredExpectation[]
  /** Subjects that it ends: expectations that began at or before `at`, also ones accepted later. */
  readonly ends: readonly Hash[]
}

/** An open expectation, with the event that is accepted if nothing ends it in time. */
export interface StoredExpectation extends Omit<NewEvent, 'changes' | 'receivedAt' | 'owed'> {
  readonly subject: Hash
  /** JSON of its name. */
  readonly rule: string
  readonly beganAt: number
  readonly dueAt: number
  readonly owed: string
}

/** An expectation past its deadline, or an event that was offered: `place` finds it again. */
export interface OverdueExpectation {
  readonly hash: Hash
  readonly media: Media
  readonly place: unknown
  /** JSON of an event that was offered. */
  readonly offered?: string | undefined
  /** How that event changes expectations. */
  readonly changes?: StoredChanges | undefined
}

/** An event as a claim reads it. */
export interface StoredEvent {
  readonly id: number
  /** JSON. */
  readonly event: string
  readonly trace: string | null
  readonly receivedAt: number
  /** JSON array of names, or `null`: see {@link NewEvent.owed}. */
  readonly owed: string | null
  readonly attempts: number
  /** JSON array of names. */
  readonly completed: string
  /** JSON of the failed attempts, or `null` if there were none. */
  readonly failed: string | null
  /** How often a process died in an attempt that had counted this event before it started. */
  readonly crashes: number
  /** True if an event of a later time of its media item was tried before it. */
  readonly late: boolean
  /** Since when it waits: received, replayed or due. */
  readonly since: number
  /** True if it has a `due_at`. */
  readonly isRetry: boolean
  /** Time until it is due (ms), 0 if it is. Only strict order reads events that are not due. */
  readonly dueInMs: number
}

export interface ClaimedLane {
  readonly media: Media
  readonly turn: number
  /** The last event recorded as tried: later ones are untried; earlier ones have ended, died or have a `due_at`. */
  readonly position: number
  readonly crashes: number
  /** Latest time of an event that was tried. */
  readonly latestAt: number | undefined
  /** By id: due retries (in strict order all), then untried ones. Damaged ones too. */
  readonly events: readonly StoredEvent[]
  /** True if the read stopped at a limit. */
  readonly hasMore: boolean
  /** True if some of its events await handlers. */
  readonly awaits: boolean
}

export interface ClaimRequest {
  readonly owner: string
  /** How many lanes at most. */
  readonly lanes: number
  /** How many of these may be marked. 0: none. */
  readonly marked: number
  /** True to wait up to a second for a lane that accepts keep locked. Only for shared databases. */
  readonly waits: boolean
}

export interface ClaimedLanes {
  readonly lanes: readonly ClaimedLane[]
  /** Time until the next lane becomes ready (ms). Infinity if none will. */
  readonly nextInMs: number
  /** True if accepts keep a ready lane locked: the next claim should wait for it. */
  readonly isHeldUp: boolean
}

/** The end of an attempt, or progress in it. */
export interface SettledEvent {
  readonly media: Media
  readonly id: number
  /**
   * - `end`: handled. `retry`: due again after `delayMs`. `dead`: a dead letter.
   * - `release`: due again without counting an attempt, for a paused handler or one that only other processes have.
   * - `progress`: some handlers have completed; nothing else changes.
   */
  readonly kind: 'end' | 'retry' | 'dead' | 'release' | 'progress'
  /** Attempts made. Absolute, so that a repeated settle changes nothing. */
  readonly attempts: number
  /** True if this attempt counts: the row then has one less. */
  readonly counts: boolean
  readonly delayMs: number
  /** Names of the completed handlers. The row gets the union: a transaction may have recorded more. */
  readonly completed: readonly string[]
  /** JSON of all failed attempts. `undefined` leaves what is there. */
  readonly failed: string | undefined
  readonly late: boolean
  /** With `release`: what it waits for. See {@link awaitedNames} in `awaits.ts`. */
  readonly awaits: readonly string[]
}

/** A lane in a settle. */
export interface SettledLane {
  readonly media: Media
  readonly turn: number
  /** Position when this process last knew it recorded. A settle never overtakes an earlier one. */
  readonly first: number
  /** The last event tried. */
  readonly last: number
  readonly latestAt: number | undefined
  /** True if some of its events may await handlers: what the lane awaits is gathered again. */
  readonly awaits: boolean
  /** True if the mark of a crash is cleared: an untried event has ended. */
  readonly clear: boolean
  /** `undefined` keeps the lane. */
  readonly release: LaneRelease | undefined
}

/** A lane that was still ours when it was settled. */
export interface RecordedLane {
  readonly media: Media
  /** Time until it is ready (ms), 0 if it is. Infinity if we still have it, or nothing waits. */
  readonly readyInMs: number
}

export interface LaneRelease {
  /** True if the read stopped at a limit: the lane is ready at once. */
  readonly hasMore: boolean
  /** The lane is to rest for this long (ms), because a limit holds its next event. Untried events stay untried. */
  readonly restMs: number | undefined
}

/** The right to count, and to commit a handler's transaction: one event of a lane that this process holds. */
export interface HeldEvent {
  readonly owner: string
  readonly media: Media
  readonly turn: number
  readonly id: number
}

/** What a page of {@link Steps.expire} found. */
export interface Expiry {
  /** Delay before the next call (ms). */
  readonly nextInMs: number
  /** True if it made lanes ready, since the clock was set back. */
  readonly hasWoken?: boolean
}

/**
 * The hot steps, in each database's own statements: written out in `statements.ts` of its folder, each with its reasons.
 * Each is one transaction; in a database over a network also one message, so that a suspended process holds no lock.
 */
export interface Steps {
  /**
   * Stores events, in order. One result each. `overloaded` if the database has a limit and is full.
   * @param isWhole true to store none if there is no room for all
   */
  accept(events: readonly NewEvent[], isWhole?: boolean): Step<readonly Acceptance[]>
  /** Reads expectations past their deadline, and the time until the next one (ms), Infinity if none is open. */
  overdue(limit: number): Step<{ readonly overdue: readonly OverdueExpectation[]; readonly nextInMs: number }>
  /** Turns overdue expectations that are still open into events. Returns how many. */
  fire(overdue: readonly OverdueExpectation[]): Step<number>
  /** Claims ready lanes, the longest ready first, and reads the first events of each, within a budget of bytes. */
  claim(request: ClaimRequest): Step<ClaimedLanes>
  /** Records ends of attempts, and releases lanes. Returns the lanes that were still ours. */
  settle(owner: string, lanes: readonly SettledLane[], events: readonly SettledEvent[]): Step<readonly RecordedLane[]>
  /** Sets an event's crashes `from` one number `to` another, before it starts alone. False if the lane was lost. */
  count(held: HeldEvent, from: number, to: number): Step<boolean>
  /**
   * Starts a process: `owner` is a new id each time. A database of one process marks all lanes that are held, since
   * their owner has died.
   */
  join(owner: string, handlers: readonly HandlerName[]): Step<void>
  /** Ends a process and releases its lanes. */
  leave(owner: string, handlers: readonly HandlerName[]): Step<void>
  /**
   * Makes dead letters events again, at the end of their lanes. Returns the ids it found; other rows are gone.
   * @throws WebhookError `overloaded`
   */
  replay(dead: readonly { readonly id: number; readonly media: Media }[]): Step<readonly number[]>
  /** Keeps an unreadable delivery, unless it is kept already. */
  keep(unreadable: NewUnreadable): Step<void>
  /**
   * Stores the events of an unreadable delivery in its place. `gone` if the delivery was replayed or discarded.
   * @throws WebhookError `overloaded`
   */
  replace(unreadable: Hash, events: readonly NewEvent[]): Step<readonly Acceptance[] | 'gone'>
  /** Makes a retry due now. False if the event has none. */
  retry(hash: Hash): Step<boolean>
  /** Deletes a page of what is no longer remembered: ended events, their lanes, ends of expectations. */
  expire(): Step<Expiry>
  /** Absent in a database that only one process uses. */
  readonly shared?: SharedSteps
}

/** Steps between processes. */
export interface SharedSteps {
  /** Renews the lease. False if it had expired, which is final. */
  renew(owner: string, running: RunningEvents): Step<boolean>
  /** Looks for what signals may have missed, after each renewal. May be slow. */
  lookAround(owner: string): Step<Surroundings>
  /** Frees and marks the lanes of expired processes. Returns true if there may be more. */
  takeOver(): Step<boolean>
  /** Claims again the lanes that are ours but not among `known`: a settle or its answer was lost. */
  adopt(owner: string, known: readonly Media[]): Step<readonly ClaimedLane[]>
  /** Claims lanes with events that await handlers of this process, or handlers that were removed. */
  claimAwaited(owner: string, names: readonly string[], lanes: number): Step<readonly ClaimedLane[]>
  /** Publishes handlers that were added or removed. */
  publish(owner: string, handlers: readonly HandlerName[], former: readonly HandlerName[]): Step<void>
  /** Reads the handlers of the living, and those that the last process to have them took away. */
  handlers(): Step<PublishedHandlers>
}

/** What a process finds when it looks around. */
export interface Surroundings {
  /** The lease of another process has expired. */
  readonly hasExpired: boolean
  /** A lane is ready: its signal may have been missed. */
  readonly hasReady: boolean
  /** Some lane awaits handlers. */
  readonly hasAwaited: boolean
  /** Lanes that this process has. */
  readonly owned: number
}

/** Attempts that take long, for pages of other processes: start (ms since the epoch) by event id. */
export type RunningEvents = Readonly<Record<string, number>> | undefined

export type Value = string | number | null | Uint8Array

export interface Statement {
  readonly sql: string
  readonly values?: readonly Value[]
}

/**
 * The few words in which databases differ, for the statements off the hot path (lists, counts, operators' changes). Those
 * are written once. In them `$event` names a table, `$1` a value, `$now` the current time in the format of event columns.
 */
export interface Dialect {
  /** SQL expression for a time of an event in ms since the epoch. */
  ms(column: string): string
  /** SQL expression for the bytes of a column in hex. */
  hex(column: string): string
  /** SQL expression for a value as JSON text. A JSON column stays as it is. */
  json(value: string): string
  /** SQL expression for the lane of a media item, from what {@link Database.hashMedia} returns. */
  lane(media: string): string
  /** SQL expression for a column of handlers' names as a JSON array. */
  names(column: string): string
  /** Query for the values of a JSON array of hashes: `hash`, and its index `place`. */
  hashesIn(array: string): string
  /** SQL condition: a lane is ready at some time. */
  readonly isReady: string
  /** Rows one statement may read, where reading blocks the event loop. Absent: any number. */
  readonly rowsPerTurn?: number
  /** Most rows that a count looks at. Absent: all. */
  readonly maxCounted?: number
}

export interface DatabaseListener {
  /** Another inbox of this process takes the storage next: what is ready to be written must be sent in this call. */
  flush(): void
  /** A signal of another process. `any` if some may have been missed. */
  heard(signal: Signal): void
  /** Another process took the storage for good: nothing may start. Logged by the database. */
  lost(error: Error): void
}

/** What {@link Database.failure} tells. */
export type Failure = 'transient' | 'timeout' | undefined

/** A database. It runs steps, and knows nothing of the engine. */
export interface Database {
  readonly steps: Steps
  readonly dialect: Dialect
  /** Name of this process for operators. Absent if it has none. */
  readonly process?: string
  /**
   * Makes or checks the tables, then calls `opened`; retries both until they succeed. Steps that `opened` runs go through;
   * all others are answered `unavailable` until it has resolved.
   */
  open(opened: () => Promise<void>): void
  /** @throws WebhookError `unavailable` if the first try to open failed */
  ready(): Promise<void>
  hashKey(key: string): Hash
  hashMedia(mediaId: string): Media
  /**
   * Runs a step in a transaction. Repeats none of which a second copy could have another result, such as "gone".
   * @throws what the database throws: see {@link Database.failure}
   */
  run<Result>(step: Step<Result>): Promise<Result>
  /** Runs a query off the hot path and returns its rows. Some databases return numbers as text. */
  read<Row>(sql: string, values?: readonly Value[]): MaybePromise<Row[]>
  /** Runs statements off the hot path in one transaction. Returns the number of changed rows of each. */
  change(statements: readonly Statement[]): Promise<readonly number[]>
  /**
   * Runs a handler's function in a transaction that also records the handler as completed, if the lane is still ours when
   * it commits. Once `scope.signal` aborts, it must roll back and reject with the signal's reason, even if the function
   * never settles. Sets `scope.storageFailed` if the handler is not to blame.
   */
  transaction<Result>(
    held: HeldEvent,
    scope: TransactionScope,
    run: (client: never) => MaybePromise<Result>,
  ): Promise<Result>
  /**
   * Stores an event in a transaction of the application: as an expectation of nothing, which is overdue. Accepting it there
   * would lock its lane until the application commits. Absent if the application has no client of the database.
   * @throws WebhookError `invalid_option` if it isn't a client of this database
   */
  offer?(client: object, event: Omit<NewEvent, 'changes'>): MaybePromise<Acceptance>
  /** Tells what kind of error it is. `undefined`: the same step would fail again. */
  failure(error: unknown): Failure
  /** Starts listening. Absent if the storage tells nothing. */
  listen?(listener: DatabaseListener): void
  /** True while signals of all other processes arrive: without, the engine polls. */
  readonly isListening: boolean
  /** Tells the other processes. Never rejects: signals are only hints. */
  notify?(signal: Signal): void
  /** False once another process has taken the storage. Cheap: asked before each attempt. Absent: see the lease. */
  readonly isOurs?: boolean
  close(): MaybePromise<void>
}
