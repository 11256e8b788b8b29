import type { MaybePromise } from '../../internal/maybe-promise.ts'
import type { PublishedHandlers } from '../engine/owed-handlers.ts'
import type { AcceptedEvent, Expectation, ExpectationChanges } from '../inbox.ts'
import type { Parsing, Replays } from './dead-letters.ts'
import type { ClaimedEvent, HeldEvent } from './event.ts'
import type { EventReading } from './event-reading.ts'
import type { JobStore, SqlJob } from './job.ts'
import type { Reason, Signal } from './signal.ts'
import type { SqlTables } from './tables.ts'

// The port of the SQL inbox. A database is one `EventStore`: the hot steps, written and tuned for it. Every other operation is
// one text of SQL above the port, over `tables`.
//
// An event's row is in one of these states. Ids rise in order of acceptance.
//
//   waiting   No due time. -> claim -> held by a process.
//   held      One process has it: it waits in that process's lanes, or runs. Settling ends that, and so does the process.
//   retrying  Has a due time: a failed attempt, a release or a replay. -> waiting once due.
//   ended     No row in `event`: it is in `handled` or `dead_letter`. A replay makes it retrying or waiting again.
//
// Crashes. One event in memory can end the process, and nothing tells which one it was. So:
//
//   - When a process ends without `end`, the next takeover adds 1 to `crashes` of the events it may have been running.
//   - An event with crashes is a suspect. Claims hand out one suspect at a time, the one with the fewest crashes first, and no
//     event from behind it in its media item. So no other suspect is running when a process crashes again, unless one that has
//     waited for the limit of its handler goes on beside it.
//   - An attempt that ends, whatever its result, makes the event healthy: crashes = 0.
//   - At 10 crashes the event becomes a dead letter instead of another attempt.

/** What an event changes of expectations, with the handlers that each overdue event would owe. */
export interface OwedExpectationChanges extends ExpectationChanges {
  readonly begins: readonly (Expectation & { readonly owed: readonly string[] })[]
}

/** An event to store. */
export interface NewEvent {
  readonly accepted: AcceptedEvent
  /** Names of the handlers it owes. */
  readonly owed: readonly string[]
  readonly changes: OwedExpectationChanges | undefined
}

/** What a process asks of a claim. */
export interface Want {
  /** Maximum number of events. A claim may add as many due retries. */
  readonly limit: number
  /** True to claim a suspect too. */
  readonly withSuspect: boolean
  /** The events this process holds. */
  readonly held: readonly HeldEvent[]
  /** Memory of those (bytes, about). */
  readonly heldBytes: number
  /** Media items of which this process wants no more events for now. */
  readonly crowded: readonly string[]
}

export interface Claimed {
  /** In order of acceptance within each media item. */
  readonly events: readonly ClaimedEvent[]
  /** True if there may be more right now. */
  readonly hasMore: boolean
  /** Time until the next claim can find something without a signal (ms): a retry is due. Infinity if nothing is. */
  readonly nextInMs: number
}

/** The end of an attempt, or a step of it, to be recorded. Repeatable: its answer can be lost. */
export type Settled = { readonly job: SqlJob } & (
  | { readonly kind: 'progress'; readonly completed: readonly string[] }
  | {
      readonly kind: 'handled'
      /** Names of the handlers that this process has for it. */
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
      /** Names of the handlers that only other processes have, if it waits for those alone. */
      readonly awaits: readonly string[]
    }
  | {
      readonly kind: 'dead'
      readonly completed: readonly string[]
      /** JSON of the dead letter, without its completed handlers (dead-letter-row.ts). */
      readonly letter: string
    }
)

/** What a store tells its inbox. */
export interface StoreListener {
  /** Another process, or the store itself, has news. */
  heard(signal: Signal): void
  /** This process has stored events that it was not handed over. */
  stored(): void
  /** An event that this process has just stored, if the store knows that nothing comes before it. It counts as claimed. */
  handOver(event: ClaimedEvent): void
  /** The lease has run out by the clock of this process. It can come back. */
  cutOff(): void
  /** Another process has taken the storage over for good, which the store has logged. */
  lost(error: Error): void
  /** Starts (ms since the epoch) of the attempts that have been running for long, by event id. */
  longRunning(): Readonly<Record<string, number>> | undefined
  /** True if there is no room for another event beside so many unfinished ones: `maxWaiting` wait, or memory is full. */
  isFull(unfinished: number, maxWaiting: number): boolean
  /** What this process is doing: the number of running events, the memory of all it holds (bytes, about). */
  load(): { readonly running: number; readonly bytes: number; readonly isPaused: boolean }
}

/** The part of a store that several processes share. */
export interface SharedLease {
  /** Time for which a silent process keeps its events (ms). */
  readonly leaseMs: number
  /** Time for which event keys are remembered (ms). */
  readonly ttlMs: number
  /** True if this process has handlers that others don't know of. */
  readonly hasNewHandlers: boolean
  publish(): Promise<void>
  /** Renews the lease. `isLost`: it was over, and its events are gone. `hasDead`: another one is over. */
  renew(): Promise<{ readonly isLost: boolean; readonly hasDead: boolean }>
  /** Frees the events of processes whose lease is over, and counts the crash. */
  takeOver(): Promise<void>
  handlers(): Promise<PublishedHandlers>
}

/** The steps of an inbox that each database has its own statements for. */
export interface EventStore extends JobStore {
  readonly tables: SqlTables
  /** How operators read the events. */
  readonly reading: EventReading
  /** The tables over the connections for deliveries, if those have their own. */
  readonly accepting?: SqlTables
  /** What a replay does to the events. */
  readonly replays: Replays
  /** Replaces an unreadable delivery by its event. */
  readonly replace: Parsing['replace']

  /** Events that this process wants to hold at least, running ones included, so that a claim is worth its statement. */
  readonly claimSize: number
  /** Maximum number of held events that wait. */
  readonly readAhead: number
  /** Maximum number of held events that wait for the limit of a handler. Absent: half of `readAhead`, up to 1,000. */
  readonly maxParked?: number
  /** Memory of held events beyond which no more are claimed (bytes, about). Absent if `readAhead` is limit enough. */
  readonly maxBytes?: number
  /** Maximum number of events with an unrecorded end. A crash repeats their handlers. */
  readonly maxUnrecorded: number
  /** True while signals of other processes arrive. */
  readonly isNotified: boolean
  /** True if nothing waits or is held anywhere, and a signal will tell of the next event. */
  readonly isQuiet: boolean
  /** Maximum time between two claims (ms), while signals may be missed. */
  readonly pollMs: number

  /**
   * Makes or checks the tables, and calls `opened` before the first accept. A store that can fail at first tries again.
   * @param opened takes the tables: until it has resolved, the store's own answer `unavailable`
   */
  open(opened: (tables: SqlTables) => Promise<void>): void
  /**
   * Resolves once the store is open.
   * @throws WebhookError `unavailable` when the first try has failed
   */
  ready(): Promise<void>

  /** Stores an event with its key and its changes of expectations, in one commit. False: the key is known. */
  accept(event: NewEvent): MaybePromise<boolean>
  /** Resolves once every accept has ended. */
  accepted(): Promise<void>
  /** Turns overdue expectations into events. Resolves with the time until the next call (ms), Infinity if none is open. */
  acceptDue(): Promise<number>
  /**
   * Claims the oldest due events, none whose media item another process holds. In a strict order a shared store leaves out what is
   * behind an event with a due time; where one process handles, the worker holds that back. `ask` is called when the
   * claim is sent. `undefined`: claims were given up, or the lease ended, while it was on its way. It claims nothing then.
   */
  claim(ask: () => Want): Promise<Claimed | undefined>
  /** Makes the next claim look there as well. */
  look(reason: Reason): void
  /** Gives up every claim but these: answers were lost, and claims under way claim nothing any more. */
  keepOnly(held: readonly HeldEvent[]): Promise<void>
  /** Records an end. False: another process has the event, or the end is recorded already. */
  settle(end: Settled): Promise<boolean>
  /** Begins to hold events. A second call begins a new lease. */
  begin(listener: StoreListener): Promise<void>
  /** Absent in a database that one process at a time opens. */
  readonly shared?: SharedLease
  /** Stops signals and ends the lease, so that the next process has the events at once. */
  end(): Promise<void>

  /** Forgets some expired keys, records and ends of expectations. Resolves with the delay before the next call (ms). */
  expire(): Promise<number>
  /** True if the last call has left nothing, a short time ago: another one isn't worth a statement in an idle database. */
  readonly hasExpired: boolean

  /** True if an error means that the same step may work soon. */
  readonly isTransient: (error: unknown) => boolean
  close(): MaybePromise<void>
}
