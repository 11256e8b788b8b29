import type { SqliteDatabase } from './database.ts'
import { keysPerCleanUp, prepareCleanUp } from './statements.ts'

/**
 * Removes expired keys and ends of expectations. Their pages are used again, so the file stops growing.
 */
export class SqliteCleanUp {
  readonly #ttlMs: number
  readonly #sql: ReturnType<typeof prepareCleanUp>
  /** The last id of the previous slice. */
  #after = 0

  constructor(database: SqliteDatabase, ttlMs: number) {
    this.#ttlMs = ttlMs
    this.#sql = prepareCleanUp(database)
  }

  /** Makes delays that a clock that was ahead has recorded start now. Returns `true` if there were any. */
  correctDelays(): boolean {
    const now = Date.now()
    return Number(this.#sql.correctDelays.run(now, now, now).changes) > 0
  }

  /** Removes some keys or ends, as part of a transaction. Returns `true` if there may be more. */
  step(): boolean {
    return this.#removeSlice() || this.#forgetEnds()
  }

  /** Returns `true` if the next slice of the keys may also have expired ones. */
  #removeSlice(): boolean {
    const { oldest, newest } = this.#kept()
    const end = this.#sql.lastOfSlice.get(this.#after) as { id: number; accepted_at: number } | undefined
    this.#sql.remove.run(this.#after, end?.id ?? Number.MAX_SAFE_INTEGER, oldest, newest, oldest, newest)
    const hasMore = end !== undefined && (end.accepted_at < oldest || end.accepted_at > newest)
    // It goes back to the first key, because keys that were kept for later ends expire in no order.
    this.#after = hasMore ? end.id : 0
    return hasMore
  }

  /** Returns `true` if there may be more expired ends. */
  #forgetEnds(): boolean {
    const { oldest, newest } = this.#kept()
    return Number(this.#sql.forgetEnds.run(oldest, newest).changes) === keysPerCleanUp
  }

  /** The times of acceptance and of ends that are remembered. */
  #kept(): { readonly oldest: number; readonly newest: number } {
    const now = Date.now()
    return { oldest: now - this.#ttlMs, newest: now + this.#ttlMs }
  }
}
