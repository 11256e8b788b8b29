import type { MaybePromise } from '../../internal/maybe-promise.ts'
import type { PublishedHandlers } from '../engine/owed-handlers.ts'
import type { AcceptedEvent, Expectation, ExpectationChanges } from '../inbox.ts'
import type { ReplayParsing, Replays } from './dead-letters.ts'
import type { ClaimedEvent, HeldEvent } from './event.ts'
import type { EventReading } from './event-reading.ts'
import type { JobStore, SqlJob } from './job.ts'
import type { Reason, Signal } from './signal.ts'
import type { SqlTables } from './tables.ts'

// The port of the SQL inbox. Each database is one `EventStore`: the hot steps, written and tuned for it. Every other
// operation is SQL above the port, over `tables`.
//
// Life of an event's row. Ids are in order of acceptance.
//
//   waiting   No due time. Claiming makes it held.
//   held      One process has it, queued in a lane or running. Settling ends this, and so does the end of the process.
//   retrying  Has a due time, after a failed attempt, a release or a replay. Waiting again once due.
//   ended     Gone from `event`: now in `handled` or `dead_letter`. A replay makes it retrying or waiting again.
//
// Crashes. One event can take its process down, and nothing tells which one. So:
//
//   - When a process ends without calling `end`, the next takeover adds 1 to `crashes` of each event that may have been running.
//   - An event with crashes is a suspect. Claims hand out one suspect at a time, fewest crashes first, and nothing behind it in its
//     media item. At the next crash no other suspect is running, except one resumed after waiting for its handler's limit.
//   - An attempt that ends, whatever the result, clears the suspicion: crashes = 0.
//   - At 10 crashes the event becomes a dead letter instead of another attempt.

/** Expectation changes of an event, with the handlers each overdue event would owe. */
export interface OwedExpectationChanges extends ExpectationChanges {
  readonly begins: readonly (Expectation & { readonly owed: readonly string[] })[]
}

export interface NewEvent {
  readonly accepted: AcceptedEvent
  readonly owed: readonly string[]
  readonly changes: OwedExpectationChanges | undefined
}

export interface ClaimRequest {
  /** Maximum number of events. A claim may add as many due retries. */
  readonly limit: number
  /** True if the claim may include a suspect. */
  readonly withSuspect: boolean
  readonly held: readonly HeldEvent[]
  readonly heldBytes: number
  /** Media items to skip. */
  readonly skippedMedia: readonly string[]
}

export interface ClaimResult {
  /** In order of acceptance within each media item. */
  readonly events: readonly ClaimedEvent[]
  /** True if another claim may find more right away. */
  readonly hasMore: boolean
  /** Time until a claim can find something without a signal: the next retry (ms). Infinity if there is none. */
  readonly nextInMs: number
}

/** The end of an attempt, or progress in it. Recording one is repeatable, because the answer can be lost. */
export type Settled = { readonly job: SqlJob } & (
  | { readonly kind: 'progress'; readonly completed: readonly string[] }
  | {
      readonly kind: 'handled'
      /** Names of this process's handlers for the event. */
      readonly handlers: readonly string[]
    }
  | {
      readonly kind: 'retry'
      readonly delayMs: number
      readonly completed: readonly string[]
      /** JSON of its failed attempts. Absent if none was added. */
      readonly failed: string | undefined
      /** 1, or 0 if the attempt does not count. */
      readonly counts: number
    }
  | {
      readonly kind: 'release'
      readonly delayMs: number
      readonly completed: readonly string[]
      /** Names of handlers only other processes have, if the event waits for those alone. */
      readonly awaits: readonly string[]
    }
  | {
      readonly kind: 'dead'
      readonly completed: readonly string[]
      /** JSON of the dead letter without its completed handlers (dead-letter-row.ts). */
      readonly letter: string
    }
)

export interface StoreListener {
  /** A signal from another process or the store itself. */
  heard(signal: Signal): void
  /** This process stored events, and a claim must pick them up. */
  stored(): void
  /** This process stored an event that nothing precedes. It counts as claimed. */
  handOver(event: ClaimedEvent): void
  /** The lease expired by this process's clock. It may come back. */
  cutOff(): void
  /** Another process took the storage for good. Already logged by the store. */
  lost(error: Error): void
  longRunning(): Readonly<Record<string, number>> | undefined
  /** True if there is no room for another event: `maxWaiting` already wait, or memory is full. */
  isFull(unfinished: number, maxWaiting: number): boolean
  /** This process's load: running events, and memory of all held ones (bytes, about). */
  load(): { readonly running: number; readonly bytes: number; readonly isPaused: boolean }
}

/** The part of a store that several processes share. */
export interface SharedLease {
  readonly leaseMs: number
  readonly ttlMs: number
  readonly hasNewHandlers: boolean
  publish(): Promise<void>
  /** Renews the lease. `isLost`: it had expired, and its events are gone. `hasDead`: another one has expired. */
  renew(): Promise<{ readonly isLost: boolean; readonly hasDead: boolean }>
  /** Frees the events of expired leases, and counts the crash. */
  takeOver(): Promise<void>
  handlers(): Promise<PublishedHandlers>
}

/** The hot steps of an inbox, in each database's own statements. */
export interface EventStore extends JobStore {
  readonly tables: SqlTables
  readonly reading: EventReading
  readonly accepting?: SqlTables
  readonly replays: Replays
  readonly replace: ReplayParsing['replace']

  /** Minimum number of events to hold, running ones included: makes a claim worth its statement. */
  readonly claimSize: number
  readonly readAhead: number
  /** Maximum number of parked events. Absent: half of `readAhead`, up to 1,000. */
  readonly maxParked?: number
  /** Memory of held events past which claims stop (bytes, about). Absent if `readAhead` is limit enough. */
  readonly maxBytes?: number
  /** Maximum number of events with an unrecorded end. A crash repeats their handlers. */
  readonly maxUnrecorded: number
  /** True while signals of other processes arrive. */
  readonly isNotified: boolean
  /** True if nothing waits or is held anywhere, and a signal will announce the next event. */
  readonly isQuiet: boolean
  /** Maximum time between two claims, in case a signal was missed (ms). */
  readonly pollMs: number

  /**
   * Creates or checks the tables, and calls `opened` before the first accept. Retries if the database isn't there yet.
   * @param opened receives the tables. Until it resolves, the store's own steps answer `unavailable`
   */
  open(opened: (tables: SqlTables) => Promise<void>): void
  /** @throws WebhookError `unavailable` if the first try to open failed */
  ready(): Promise<void>

  /** Stores an event with its key and expectation changes in one commit. False: the key is known. */
  accept(event: NewEvent): MaybePromise<boolean>
  accepted(): Promise<void>
  /** Turns overdue expectations into events. Resolves with the time until the next (ms), Infinity if none is open. */
  acceptDue(): Promise<number>
  /**
   * Claims the oldest due events, except of media items another process holds. In strict order a shared store skips
   * events behind a retry; without sharing, the worker blocks those lanes. `ask` is called when the claim is sent.
   * Returns `undefined`, and claims nothing, if `keepOnly` or the end of the lease overtook the claim.
   */
  claim(ask: () => ClaimRequest): Promise<ClaimResult | undefined>
  /** Makes the next claim look beyond new events, where the reason says. */
  widenNextClaim(reason: Reason): void
  /** Releases every claim but these, after lost answers. Claims in flight come back empty. */
  keepOnly(held: readonly HeldEvent[]): Promise<void>
  /** Records an end. False: another process has the event, or the end is already recorded. */
  settle(end: Settled): Promise<boolean>
  /** Starts holding events. A second call starts a new lease. */
  begin(listener: StoreListener): Promise<void>
  readonly shared?: SharedLease
  /** Stops signals and ends the lease, so the next process gets the events at once. */
  end(): Promise<void>

  /** Deletes a batch of expired rows. Resolves with the delay before the next call (ms). */
  expire(): Promise<number>
  /** True if the last call, a short time ago, left nothing: in an idle database the next isn't worth a statement. */
  readonly hasExpired: boolean

  /** True if the same step may soon succeed. */
  readonly isTransient: (error: unknown) => boolean
  close(): MaybePromise<void>
}
