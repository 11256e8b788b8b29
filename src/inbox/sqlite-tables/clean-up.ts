import type { SqliteDatabase, SqliteStatement } from './database.ts'

/** The number of keys in a slice. It takes about a millisecond, and deliveries may have to wait for it. */
const sliceSize = 250

/** Removes expired keys. Their pages are used again, so the file stops growing. */
export class SqliteCleanUp {
  readonly #ttlMs: number
  readonly #endOfSlice: SqliteStatement
  readonly #remove: SqliteStatement
  /** The last id of the previous slice. */
  #after = 0

  constructor(database: SqliteDatabase, ttlMs: number) {
    this.#ttlMs = ttlMs
    this.#endOfSlice = database.prepare(
      `SELECT id, accepted_at FROM inbox_key WHERE id > ? ORDER BY id LIMIT 1 OFFSET ${sliceSize - 1}`,
    )
    // Keys with a future time are also removed. They come from a clock that was ahead, and would stay too long.
    this.#remove = database.prepare(
      `DELETE FROM inbox_key
       WHERE id > ? AND id <= ? AND accepted_at NOT BETWEEN ? AND ?
         AND NOT EXISTS (SELECT 1 FROM inbox_event WHERE inbox_event.id = inbox_key.id)
         AND NOT EXISTS (SELECT 1 FROM inbox_dead_letter WHERE event_id = inbox_key.id)`,
    )
  }

  /** Cleans up a slice, as part of a transaction. Returns `true` if the next slice may also have expired keys. */
  slice(): boolean {
    const now = Date.now()
    const [oldest, newest] = [now - this.#ttlMs, now + this.#ttlMs]
    const end = this.#endOfSlice.get(this.#after) as { id: number; accepted_at: number } | undefined
    this.#remove.run(this.#after, end?.id ?? Number.MAX_SAFE_INTEGER, oldest, newest)
    const goesOn = end !== undefined && (end.accepted_at < oldest || end.accepted_at > newest)
    // It goes back to the first key, because keys that were kept for unfinished events expire in no order.
    this.#after = goesOn ? end.id : 0
    return goesOn
  }
}
