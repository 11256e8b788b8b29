import { hash } from 'node:crypto'
import type { MediaEvent } from '../../events/catalogue.ts'
import type { AcceptedEvent } from '../inbox.ts'
import type { Before } from '../shared/job.ts'
import type { SqliteDatabase, SqliteStatement } from './driver.ts'

/** An event of the file that has not been handled. */
export interface StoredEvent extends AcceptedEvent, Before {
  readonly row: number
  /** How often its next attempt was begun after a crash, and cut off. */
  readonly begun: number
  /** When its next attempt is due, in ms since the epoch. */
  readonly dueAt: number
}

interface EventRow {
  readonly id: number
  readonly event: string
  readonly received_at: number
  readonly attempts: number
  readonly completed: string
  readonly due_at: number
  readonly begun: number
}

/** The tables of the keys that were seen, and of the events that wait. Each method is part of a transaction. */
export class SqliteEvents {
  readonly #remember: SqliteStatement
  readonly #insert: SqliteStatement
  readonly #remove: SqliteStatement
  readonly #postpone: SqliteStatement
  readonly #complete: SqliteStatement
  readonly #begin: SqliteStatement
  readonly #counts: SqliteStatement
  readonly #ids: SqliteStatement
  readonly #get: SqliteStatement

  constructor(database: SqliteDatabase) {
    this.#remember = database.prepare('INSERT INTO inbox_key (hash, accepted_at) VALUES (?, ?) ON CONFLICT DO NOTHING')
    this.#insert = database.prepare('INSERT INTO inbox_event (id, event, received_at) VALUES (?, ?, ?)')
    this.#remove = database.prepare('DELETE FROM inbox_event WHERE id = ?')
    this.#postpone = database.prepare(
      'UPDATE inbox_event SET attempts = ?, completed = ?, due_at = ?, begun = 0 WHERE id = ?',
    )
    this.#complete = database.prepare('UPDATE inbox_event SET completed = ? WHERE id = ?')
    this.#begin = database.prepare('UPDATE inbox_event SET begun = ? WHERE id = ?')
    this.#counts = database.prepare(
      'SELECT count(*) AS unfinished, count(CASE WHEN due_at > ? THEN 1 END) AS retrying FROM inbox_event',
    )
    this.#ids = database.prepare('SELECT id FROM inbox_event ORDER BY id')
    this.#get = database.prepare('SELECT * FROM inbox_event WHERE id = ?')
  }

  /** Stores an event unless its key was seen before, and says in which row. */
  accept(keyHash: string, event: string, receivedAt: Date): number | undefined {
    const { changes, lastInsertRowid } = this.#remember.run(keyHash, Date.now())
    if (Number(changes) === 0) return undefined
    const row = Number(lastInsertRowid)
    this.insert(row, event, receivedAt)
    return row
  }

  insert(row: number, event: string, receivedAt: Date): void {
    this.#insert.run(row, event, receivedAt.getTime())
  }

  remove(row: number): void {
    this.#remove.run(row)
  }

  postpone(row: number, { attempts, completed }: Before, dueAt: number): void {
    this.#postpone.run(attempts, JSON.stringify(completed), Math.ceil(dueAt), row)
  }

  complete(row: number, completed: readonly string[]): void {
    this.#complete.run(JSON.stringify(completed), row)
  }

  /** Writes down how often its next attempt was begun. */
  begin(row: number, begun: number): void {
    this.#begin.run(begun, row)
  }

  /** How many wait, and how many of them for their next attempt. */
  counts(): { waiting: number; retrying: number } {
    const { unfinished, retrying } = this.#counts.get(Date.now()) as { unfinished: number; retrying: number }
    return { waiting: unfinished - retrying, retrying }
  }

  /** Those that wait, in the order in which they were accepted, but for those that are `held` already. */
  waiting(held: ReadonlySet<number>): StoredEvent[] {
    const rows = this.#ids.all() as { id: number }[]
    // Each on its own: when one is replayed, ten thousand others may be held.
    return rows.filter(({ id }) => !held.has(id)).map(({ id }) => toStoredEvent(this.#get.get(id) as EventRow))
  }
}

const toStoredEvent = (row: EventRow): StoredEvent => ({
  row: row.id,
  event: readEvent(row.event),
  receivedAt: new Date(row.received_at),
  attempts: row.attempts,
  completed: JSON.parse(row.completed),
  begun: row.begun,
  dueAt: row.due_at,
})

/** An event that JSON.stringify wrote. */
const readEvent = (text: string): MediaEvent => reviveEvent(JSON.parse(text))

/** An event that JSON.parse read: of all its fields only one is no JSON. */
export const reviveEvent = (event: MediaEvent): MediaEvent =>
  event.emittedAt === undefined ? event : { ...event, emittedAt: new Date(event.emittedAt) }

/** What the file knows a key by. Its JSON is hashed, since in UTF-8 lone surrogates are all alike. */
export const hashKey = (key: string): string => shortHash(JSON.stringify(key))

/** Half a SHA-256, which is as good as what it is made of. */
export const shortHash = (content: string | Uint8Array): string => hash('sha256', content, 'base64url').slice(0, 22)
