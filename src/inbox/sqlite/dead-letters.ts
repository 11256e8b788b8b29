import type { DeadEvent, DeadLetter, RefusedDelivery } from '../inbox.ts'
import { inTransaction, type SqliteDatabase, type SqliteStatement } from './driver.ts'
import { hashKey, type SqliteEvents } from './events.ts'
import { eventRow, type LetterRow, refusedLetter, refusedRow, toLetter } from './letter.ts'

/** How many refused deliveries are kept, the newest; each is as large as its body. */
const maxRefused = 1_000

/** The table of the dead letters: events that could not be handled, and genuine deliveries that could not be read. */
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

  /** Part of a transaction. */
  add(id: number, letter: DeadEvent): void {
    this.#insert(letter.key, eventRow(id, letter))
  }

  /** Keeps a delivery, unless it is there. Part of a transaction. */
  refuse(refused: RefusedDelivery): void {
    const letter = refusedLetter(refused)
    this.#insert(letter.key, refusedRow(letter, refused))
  }

  #insert(key: string, { event_id, letter, body }: LetterRow): void {
    this.#hasGrown = true
    this.#statements.insert.run(hashKey(key), event_id, letter, body)
  }

  list({ limit = 100, offset = 0 }: { limit?: number; offset?: number } = {}): readonly DeadLetter[] {
    return (this.#statements.list.all(limit, offset) as LetterRow[]).map(toLetter)
  }

  get(key: string): DeadLetter | undefined {
    const row = this.#row(key)
    return row && toLetter(row)
  }

  #row(key: string): LetterRow | undefined {
    return (this.#statements.get.get(hashKey(key)) as LetterRow | undefined) ?? undefined
  }

  /**
   * Puts an event among those that wait, for whoever handles them to find. A refused delivery, which only they can read,
   * is marked for them.
   */
  replay(key: string): boolean {
    return inTransaction(this.#database, () => {
      const row = this.#row(key)
      if (row === undefined) return false
      const { event, receivedAt, completed } = toLetter(row)
      if (event === undefined) return Number(this.#statements.mark.run(1, hashKey(key)).changes) > 0
      const id = row.event_id as number
      this.#events.insert(id, JSON.stringify(event), receivedAt)
      this.#events.complete(id, completed)
      return this.discard(key)
    })
  }

  /** The refused deliveries that somebody wants to have read again. */
  marked(): readonly DeadLetter[] {
    return (this.#statements.marked.all() as LetterRow[]).map(toLetter)
  }

  unmark(key: string): void {
    this.#statements.mark.run(0, hashKey(key))
  }

  discard(key: string): boolean {
    return Number(this.#statements.remove.run(hashKey(key)).changes) > 0
  }

  /** Drops what is beyond the newest `maxEvents` events and 1,000 refused deliveries, and says what. */
  trim(maxEvents: number): readonly DeadLetter[] {
    if (!this.#hasGrown) return []
    const { events, refused } = this.#statements
    const rows = [...events.all(maxEvents), ...refused.all(maxRefused)] as LetterRow[]
    const dropped = rows.map(toLetter)
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
      `INSERT INTO inbox_dead_letter (hash, event_id, letter, body) VALUES (?, ?, ?, ?)
       ON CONFLICT (hash) DO NOTHING`,
    ),
    list: statement('SELECT * FROM inbox_dead_letter ORDER BY id DESC LIMIT ? OFFSET ?'),
    get: statement('SELECT * FROM inbox_dead_letter WHERE hash = ?'),
    remove: statement('DELETE FROM inbox_dead_letter WHERE hash = ?'),
    mark: statement('UPDATE inbox_dead_letter SET replay = ? WHERE hash = ?'),
    marked: statement('SELECT * FROM inbox_dead_letter WHERE replay = 1'),
    events: beyond('IS NOT NULL'),
    refused: beyond('IS NULL'),
  }
}
