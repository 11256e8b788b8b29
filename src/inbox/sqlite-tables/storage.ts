import type { Predecessor } from '../engine/suspects.ts'
import type { SqliteDeadLetters } from './dead-letters.ts'
import type { SqliteEvents } from './events.ts'

/** The tables of an inbox. */
export interface SqliteTables {
  readonly events: SqliteEvents
  readonly deadLetters: SqliteDeadLetters
}

/** Commits writes to the tables. */
export interface Commits {
  /**
   * Resolves with the result of `write` once it is on disk. Rejects when it was undone.
   * @param write changes the database. It can run more than once, and is undone each time but the last. It must not
   * throw for reasons of its own: that would undo the others too, unless it is a handler's
   */
  add<T>(write: () => T, options?: { readonly isHandlers?: boolean }): Promise<T>
  /** Returns `false` when the inbox has lost its storage, which is reported. Cheap enough for every attempt. */
  isOwner(): boolean
}

/** The records of crashes, in the table `inbox_owner`. */
export interface CrashRecords {
  /** `undefined` when there was none, or it closed in order. */
  readonly predecessor: Predecessor | undefined
  /** Names the event that is handled while no other one is: if the process ends now, that event made it crash. */
  recordAlone(row: number | null): void
  /** Records that the events which were running before a crash have been handled, and caused no other. */
  forgetCrashes(): void
}
