import type { DeadEvent, DeadLetter, UnreadableDelivery } from '../inbox.ts'
import { maxUnreadable } from '../shared/stored.ts'
import { type DeadLetterRow, eventRow, toDeadLetter, unreadableDeadLetter, unreadableRow } from './dead-letter-row.ts'
import { inTransaction, type SqliteDatabase, type SqliteStatement } from './driver.ts'
import { hashKey, type SqliteEvents } from './events.ts'

/** The table of the dead letters: events that could not be handled, and unreadable deliveries. */
export class SqliteDeadLetters {
  readonly #database: SqliteDatabase
  readonly #events: SqliteEvents
  readonly #statements: ReturnType<typeof prepare>
  #hasGrown = true

  constructor(database: SqliteDatabase, events: SqliteEvents) {
    this.#database = database
    this.#events = events
    this.#statements = prepare(database)
  }

  get size(): number {
    return (this.#statements.count.get() as { count: number }).count
  }

  /** Adds an event. Part of a transaction. */
  add(id: number, deadLetter: DeadEvent): void {
    this.#insert(deadLetter.key, eventRow(id, deadLetter))
  }

  /** Adds an unreadable delivery, unless it is there. Part of a transaction. */
  addUnreadable(unreadable: UnreadableDelivery): void {
    const deadLetter = unreadableDeadLetter(unreadable)
    this.#insert(deadLetter.key, unreadableRow(deadLetter, unreadable))
  }

  #insert(key: string, { event_id, dead_letter, body }: DeadLetterRow): void {
    this.#hasGrown = true
    this.#statements.insert.run(hashKey(key), event_id, dead_letter, body)
  }

  list({ limit = 100, offset = 0 }: { limit?: number; offset?: number } = {}): readonly DeadLetter[] {
    return (this.#statements.list.all(limit, offset) as DeadLetterRow[]).map(toDeadLetter)
  }

  get(key: string): DeadLetter | undefined {
    const row = this.#row(key)
    return row && toDeadLetter(row)
  }

  #row(key: string): DeadLetterRow | undefined {
    return (this.#statements.get.get(hashKey(key)) as DeadLetterRow | undefined) ?? undefined
  }

  /**
   * Puts an event back among the waiting ones, where the process that handles them finds it. An unreadable delivery is
   * marked for that process, since no other can parse it.
   */
  replay(key: string): boolean {
    return inTransaction(this.#database, () => {
      const row = this.#row(key)
      if (row === undefined) return false
      const { event, receivedAt, completed } = toDeadLetter(row)
      if (event === undefined) return Number(this.#statements.mark.run(1, hashKey(key)).changes) > 0
      const id = row.event_id as number
      this.#events.insert(id, JSON.stringify(event), receivedAt)
      this.#events.complete(id, completed)
      return this.discard(key)
    })
  }

  /** Lists the unreadable deliveries that were marked for replay. */
  marked(): readonly DeadLetter[] {
    return (this.#statements.marked.all() as DeadLetterRow[]).map(toDeadLetter)
  }

  unmark(key: string): void {
    this.#statements.mark.run(0, hashKey(key))
  }

  discard(key: string): boolean {
    return Number(this.#statements.remove.run(hashKey(key)).changes) > 0
  }

  /** Drops the dead letters beyond the newest `maxEvents` events and 1,000 unreadable deliveries, and returns them. */
  trim(maxEvents: number): readonly DeadLetter[] {
    if (!this.#hasGrown) return []
    const { events, unreadable } = this.#statements
    const rows = [...events.all(maxEvents), ...unreadable.all(maxUnreadable)] as DeadLetterRow[]
    const dropped = rows.map(toDeadLetter)
    inTransaction(this.#database, () => {
      for (const { key } of dropped) this.discard(key)
    })
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
    get: statement('SELECT * FROM inbox_dead_letter WHERE hash = ?'),
    remove: statement('DELETE FROM inbox_dead_letter WHERE hash = ?'),
    mark: statement('UPDATE inbox_dead_letter SET replay = ? WHERE hash = ?'),
    marked: statement('SELECT * FROM inbox_dead_letter WHERE replay = 1'),
    events: beyond('IS NOT NULL'),
    unreadable: beyond('IS NULL'),
  }
}
