import { maxUnreadable, unreadableDeadLetter } from '../engine/stored.ts'
import type { DeadEvent, DeadLetter, UnreadableDelivery } from '../reading.ts'
import type { SqliteDatabase, SqliteStatement } from './database.ts'
import { type DeadLetterRow, eventRow, toDeadLetter, unreadableRow } from './dead-letter-row.ts'
import type { SqliteEvents } from './events.ts'

/**
 * The table of the dead letters: events that could not be handled, and unreadable deliveries. Call each method that
 * writes in a transaction.
 */
export class SqliteDeadLetters {
  readonly #events: SqliteEvents
  readonly #statements: ReturnType<typeof prepare>
  #hasGrown = true

  constructor(database: SqliteDatabase, events: SqliteEvents) {
    this.#events = events
    this.#statements = prepare(database)
  }

  get size(): number {
    return (this.#statements.count.get() as { count: number }).count
  }

  /** Adds an event. */
  add(id: number, deadLetter: DeadEvent): void {
    this.#insert(deadLetter.key, eventRow(id, deadLetter))
  }

  /**
   * Adds an unreadable delivery, unless it is there.
   * @param digest a hash of its body
   */
  addUnreadable(unreadable: UnreadableDelivery, digest: string): void {
    const deadLetter = unreadableDeadLetter(unreadable, digest)
    this.#insert(deadLetter.key, unreadableRow(deadLetter, unreadable))
  }

  #insert(key: string, { event_id, dead_letter, body }: DeadLetterRow): void {
    this.#hasGrown = true
    this.#statements.insert.run(this.#events.hashKey(key), event_id, dead_letter, body)
  }

  list({ limit = 100, offset = 0 }: { limit?: number; offset?: number } = {}): readonly DeadLetter[] {
    return (this.#statements.list.all(limit, offset) as DeadLetterRow[]).map(toDeadLetter)
  }

  /** Lists the keys of all dead letters, oldest first. */
  keys(): readonly string[] {
    return (this.#statements.all.all() as DeadLetterRow[]).map((row) => toDeadLetter(row).key)
  }

  /** Lists the first 100 dead letters after a row, oldest first. */
  slice(after: number): readonly { readonly id: number; readonly deadLetter: DeadLetter }[] {
    const rows = this.#statements.slice.all(after) as (DeadLetterRow & { id: number })[]
    return rows.map((row) => ({ id: row.id, deadLetter: toDeadLetter(row) }))
  }

  get(key: string): DeadLetter | undefined {
    const row = this.#row(key)
    return row && toDeadLetter(row)
  }

  #hashes(key: string): [string, string] {
    return [this.#events.hashKey(key), this.#events.earlierHash(key)]
  }

  #row(key: string): DeadLetterRow | undefined {
    return (this.#statements.get.get(...this.#hashes(key)) as DeadLetterRow | undefined) ?? undefined
  }

  /** Puts an event back among the waiting ones, and returns its row. Returns `undefined` if no event has that key. */
  putBack(key: string): number | undefined {
    const row = this.#row(key)
    if (row === undefined || row.event_id === null) return undefined
    const deadLetter = toDeadLetter(row) as DeadEvent
    this.#events.putBack(row.event_id, deadLetter, deadLetter)
    this.discard(key)
    return row.event_id
  }

  /** Marks an unreadable delivery for the process that handles the file, since only that process can parse it. */
  mark(key: string): boolean {
    return Number(this.#statements.mark.run(1, ...this.#hashes(key)).changes) > 0
  }

  /** Lists the unreadable deliveries that were marked for replay. */
  marked(): readonly DeadLetter[] {
    return (this.#statements.marked.all() as DeadLetterRow[]).map(toDeadLetter)
  }

  unmark(key: string): void {
    this.#statements.mark.run(0, ...this.#hashes(key))
  }

  discard(key: string): boolean {
    return Number(this.#statements.remove.run(...this.#hashes(key)).changes) > 0
  }

  /** `true` if there may be too many dead letters. In that case, call {@link trim}. */
  get hasGrown(): boolean {
    return this.#hasGrown
  }

  /** Drops the dead letters beyond the newest `maxEvents` events and 1,000 unreadable deliveries, and returns them. */
  trim(maxEvents: number): readonly DeadLetter[] {
    const { events, unreadable } = this.#statements
    const rows = [...events.all(maxEvents), ...unreadable.all(maxUnreadable)] as DeadLetterRow[]
    const dropped = rows.map(toDeadLetter)
    for (const { key } of dropped) this.discard(key)
    this.#hasGrown = dropped.length > 0
    return dropped
  }
}

const prepare = (database: SqliteDatabase) => {
  const statement = (sql: string): SqliteStatement => database.prepare(sql)
  const beyond = (kind: string) =>
    statement(`SELECT * FROM inbox_dead_letter WHERE event_id ${kind} ORDER BY id DESC LIMIT 100 OFFSET ?`)
  return {
    count: statement('SELECT count(*) AS count FROM inbox_dead_letter'),
    insert: statement(
      `INSERT INTO inbox_dead_letter (hash, event_id, dead_letter, body) VALUES (?, ?, ?, ?)
       ON CONFLICT (hash) DO NOTHING`,
    ),
    list: statement('SELECT * FROM inbox_dead_letter ORDER BY id DESC LIMIT ? OFFSET ?'),
    all: statement('SELECT event_id, dead_letter, body FROM inbox_dead_letter ORDER BY id'),
    slice: statement('SELECT * FROM inbox_dead_letter WHERE id > ? ORDER BY id LIMIT 100'),
    get: statement('SELECT * FROM inbox_dead_letter WHERE hash IN (?, ?)'),
    remove: statement('DELETE FROM inbox_dead_letter WHERE hash IN (?, ?)'),
    mark: statement('UPDATE inbox_dead_letter SET replay = ? WHERE hash IN (?, ?)'),
    marked: statement('SELECT * FROM inbox_dead_letter WHERE replay = 1'),
    events: beyond('IS NOT NULL'),
    unreadable: beyond('IS NULL'),
  }
}
