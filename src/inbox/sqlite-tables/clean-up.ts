import type { SqliteDatabase } from './database.ts'
import { keysPerCleanUp, prepareCleanUp } from './statements.ts'

/** Deletes expired keys and ends of expectations. SQLite reuses their pages, so the file stops growing. */
export class SqliteCleanUp {
  readonly #ttlMs: number
  readonly #sql: ReturnType<typeof prepareCleanUp>
  #after = 0

  constructor(database: SqliteDatabase, ttlMs: number) {
    this.#ttlMs = ttlMs
    this.#sql = prepareCleanUp(database)
  }

  /** Restarts delays recorded by a clock that was ahead. Returns true if there were any. */
  correctDelays(): boolean {
    const now = Date.now()
    return Number(this.#sql.correctDelays.run(now, now, now).changes) > 0
  }

  /** Deletes a batch, in the caller's transaction. Returns true if more may be left. */
  step(): boolean {
    return this.#removeSlice() || this.#forgetEnds()
  }

  #removeSlice(): boolean {
    const { oldest, newest } = this.#kept()
    const end = this.#sql.lastOfSlice.get(this.#after) as { id: number; accepted_at: number } | undefined
    this.#sql.remove.run(this.#after, end?.id ?? Number.MAX_SAFE_INTEGER, oldest, newest, oldest, newest)
    const hasMore = end !== undefined && (end.accepted_at < oldest || end.accepted_at > newest)
    // Back to the first key: keys kept for a late end expire out of order.
    this.#after = hasMore ? end.id : 0
    return hasMore
  }

  #forgetEnds(): boolean {
    const { oldest, newest } = this.#kept()
    return Number(this.#sql.forgetEnds.run(oldest, newest).changes) === keysPerCleanUp
  }

  #kept(): { readonly oldest: number; readonly newest: number } {
    const now = Date.now()
    return { oldest: now - this.#ttlMs, newest: now + this.#ttlMs }
  }
}
