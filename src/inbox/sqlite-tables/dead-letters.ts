import { maxUnreadable, unreadableDeadLetter } from '../engine/stored.ts'
import type { DeadEvent, DeadLetter, UnreadableDelivery } from '../reading.ts'
import type { SqliteDatabase } from './database.ts'
import type { SqliteEvents } from './events.ts'
import { type DeadLetterRow, toDeadLetter, toDeadLetterRow } from './rows.ts'
import { prepareDeadLetters } from './statements.ts'

/**
 * The table of the dead letters: events that could not be handled, and unreadable deliveries. Call each method that
 * writes in a transaction.
 */
export class SqliteDeadLetters {
  readonly #events: SqliteEvents
  readonly #sql: ReturnType<typeof prepareDeadLetters>
  #hasGrown = true

  constructor(database: SqliteDatabase, events: SqliteEvents) {
    this.#events = events
    this.#sql = prepareDeadLetters(database)
  }

  get size(): number {
    return (this.#sql.count.get() as { count: number }).count
  }

  /**
   * Adds a dead letter, unless it is there.
   * @param id the row of its event; null for an unreadable delivery
   */
  add(id: number | null, deadLetter: DeadLetter): void {
    const { event_id, dead_letter, body } = toDeadLetterRow(id, deadLetter)
    this.#hasGrown = true
    this.#sql.insert.run(this.#events.hashKey(deadLetter.key), event_id, dead_letter, body)
  }

  /** @param digest a hash of its body */
  addUnreadable(unreadable: UnreadableDelivery, digest: string): void {
    this.add(null, unreadableDeadLetter(unreadable, digest))
  }

  list({ limit = 100, offset = 0 }: { limit?: number; offset?: number } = {}): readonly DeadLetter[] {
    return (this.#sql.list.all(limit, offset) as DeadLetterRow[]).map(toDeadLetter)
  }

  /** Lists the keys of all dead letters, oldest first. */
  keys(): readonly string[] {
    return (this.#sql.all.all() as DeadLetterRow[]).map((row) => toDeadLetter(row).key)
  }

  /** Lists the first 100 dead letters after a row, oldest first. */
  slice(after: number): readonly { readonly id: number; readonly deadLetter: DeadLetter }[] {
    const rows = this.#sql.slice.all(after) as (DeadLetterRow & { id: number })[]
    return rows.map((row) => ({ id: row.id, deadLetter: toDeadLetter(row) }))
  }

  get(key: string): DeadLetter | undefined {
    const row = this.#row(key)
    return row && toDeadLetter(row)
  }

  #row(key: string): DeadLetterRow | undefined {
    return (this.#sql.get.get(...this.#events.hashesOf(key)) as DeadLetterRow | undefined) ?? undefined
  }

  /** Puts an event back among the waiting ones, and returns its row. Returns `undefined` if no event has that key. */
  putBack(key: string): number | undefined {
    const row = this.#row(key)
    if (row === undefined || row.event_id === null) return undefined
    this.#events.putBack(row.event_id, toDeadLetter(row) as DeadEvent)
    this.discard(key)
    return row.event_id
  }

  /** Marks an unreadable delivery for the process that handles the file, since only that process can parse it. */
  mark(key: string): boolean {
    return Number(this.#sql.mark.run(1, ...this.#events.hashesOf(key)).changes) > 0
  }

  /** Lists the unreadable deliveries that were marked for replay. */
  marked(): readonly DeadLetter[] {
    return (this.#sql.marked.all() as DeadLetterRow[]).map(toDeadLetter)
  }

  unmark(key: string): void {
    this.#sql.mark.run(0, ...this.#events.hashesOf(key))
  }

  discard(key: string): boolean {
    return Number(this.#sql.remove.run(...this.#events.hashesOf(key)).changes) > 0
  }

  /** `true` if there may be too many dead letters. */
  get hasGrown(): boolean {
    return this.#hasGrown
  }

  /** Drops the dead letters beyond the newest `maxEvents` events and 1,000 unreadable deliveries, and returns them. */
  trim(maxEvents: number): readonly DeadLetter[] {
    if (!this.#hasGrown) return []
    const { eventsBeyond, unreadableBeyond } = this.#sql
    const rows = [...eventsBeyond.all(maxEvents), ...unreadableBeyond.all(maxUnreadable)] as DeadLetterRow[]
    const dropped = rows.map(toDeadLetter)
    for (const { key } of dropped) this.discard(key)
    this.#hasGrown = dropped.length > 0
    return dropped
  }
}
