import { type Rules, wholeNumber } from '../../internal/check-options.ts'
import type { MaybePromise } from '../../internal/maybe-promise.ts'
import type { SqliteDatabase } from './database.ts'
import { SqliteDeadLetters } from './dead-letters.ts'
import type { SqliteEvents } from './events.ts'
import { SqliteSql } from './sql.ts'

export interface InboxLimits {
  readonly concurrency: number
  readonly maxWaiting: number
  readonly maxDeadLetters: number
  readonly ttlMs: number
}

export const limitRules: Rules<InboxLimits> = {
  concurrency: wholeNumber(),
  maxWaiting: wholeNumber(),
  maxDeadLetters: wholeNumber(),
  ttlMs: wholeNumber(),
}

export const limitsOf = ({
  concurrency = 16,
  maxWaiting = 10_000,
  maxDeadLetters = 10_000,
  ttlMs = 86_400_000,
}: Partial<InboxLimits>): InboxLimits => ({ concurrency, maxWaiting, maxDeadLetters, ttlMs })

export interface SqliteTables {
  readonly database: SqliteDatabase
  readonly sql: SqliteSql
  readonly events: SqliteEvents
  readonly deadLetters: SqliteDeadLetters
}

export function tablesOf<Events extends SqliteEvents>(database: SqliteDatabase, events: Events) {
  const sql = new SqliteSql(database)
  return { database, sql, events, deadLetters: new SqliteDeadLetters(sql, events.hashKey) }
}

interface WriteOptions {
  readonly isHandlers?: boolean
  /** True if nobody waits for it to be on disk. */
  readonly canWait?: boolean
}

export interface Commits {
  /**
   * Resolves with the result of `write` once it is on disk. Rejects if it was rolled back.
   * @param write changes the database. May run more than once; all runs but the last are rolled back. Only a handler's
   * write may throw errors of its own, because any other error rolls back the other writes too
   */
  add<T>(write: () => T, options?: WriteOptions): Promise<T>
  /** Stores an event, and returns its id once it is on disk. `undefined`: its key is known. */
  accept(written: Parameters<SqliteEvents['accept']>[0]): MaybePromise<number | undefined>
  readonly deferred: number
  /** False once the inbox has lost its storage; reports the loss. Cheap enough for every attempt. */
  isOwner(): boolean
}
