import { inTransaction, type SqliteDatabase, type SqliteStatement } from './driver.ts'

/** How many keys are looked at in one go: about a millisecond's work, which deliveries may have to wait for. */
const sliceSize = 250

/** Removes the keys whose time is over. Their pages are used again, so that the file grows no further. */
export class SqliteCleanUp {
  readonly #database: SqliteDatabase
  readonly #ttlMs: number
  readonly #endOfSlice: SqliteStatement
  readonly #remove: SqliteStatement
  /** The last id of the slice before. */
  #after = 0

  constructor(database: SqliteDatabase, ttlMs: number) {
    this.#database = database
    this.#ttlMs = ttlMs
    this.#endOfSlice = database.prepare(
      `SELECT id, accepted_at FROM inbox_key WHERE id > ? ORDER BY id LIMIT 1 OFFSET ${sliceSize - 1}`,
    )
    // Those of the future are removed too: a clock that was wrong for a while must not keep all that came after.
    this.#remove = database.prepare(
      `DELETE FROM inbox_key
       WHERE id > ? AND id <= ? AND accepted_at NOT BETWEEN ? AND ?
         AND NOT EXISTS (SELECT 1 FROM inbox_event WHERE inbox_event.id = inbox_key.id)
         AND NOT EXISTS (SELECT 1 FROM inbox_dead_letter WHERE event_id = inbox_key.id)`,
    )
  }

  /** Cleans a slice up. Says whether the next one may have something to remove too. */
  slice(): boolean {
    const now = Date.now()
    const [oldest, newest] = [now - this.#ttlMs, now + this.#ttlMs]
    return inTransaction(this.#database, () => {
      const end = this.#endOfSlice.get(this.#after) as { id: number; accepted_at: number } | undefined
      this.#remove.run(this.#after, end?.id ?? Number.MAX_SAFE_INTEGER, oldest, newest)
      const goesOn = end !== undefined && (end.accepted_at < oldest || end.accepted_at > newest)
      // Back to the first, since those that were kept for their events' sake are not in the order of their end.
      this.#after = goesOn ? end.id : 0
      return goesOn
    })
  }
}
