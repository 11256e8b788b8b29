import { WebhookError } from '../../errors.ts'
import type { EarlierAttempts } from '../engine/job.ts'
import type { AcceptedEvent } from '../inbox.ts'
import type { FailedAttempt, InboxStats } from '../reading.ts'
import type { SqliteDatabase, SqliteStatement } from './database.ts'
import { type EventRow, type StoredEvent, toStoredEvent, UnreadableEvent } from './event-row.ts'
import { hashMedia } from './schema.ts'

/**
 * The first character of the hash of a key with a time. All other hashes sort before it, also those of earlier
 * releases.
 */
export const timeMark = '~'

/** An event in the form in which the tables store it. */
export interface WrittenEvent {
  readonly keyHash: string
  /** The form of its key in which an earlier release may have stored it. */
  readonly earlierHash: string | undefined
  readonly media: number
  readonly event: string
  readonly receivedAt: number
  readonly trace: string | null
}

/** The inserts that also have statements of several rows. */
const inserts = {
  key: { into: 'INSERT INTO inbox_key (hash, accepted_at, media)', row: '(?, ?, ?)', end: 'ON CONFLICT DO NOTHING' },
  event: { into: 'INSERT INTO inbox_event (id, event, received_at, trace)', row: '(?, ?, ?, ?)', end: '' },
  handled: { into: 'INSERT OR REPLACE INTO inbox_handled (id, record)', row: '(?, ?)', end: '' },
} as const

/** Makes the SQL that inserts rows. */
export function insertOf(what: keyof typeof inserts, rows = 1): string {
  const { into, row, end } = inserts[what]
  return `${into} VALUES ${Array(rows).fill(row).join()} ${end}`
}

/** The tables of the remembered keys and of the waiting events. Call each method in a transaction. */
export class SqliteEvents {
  /** Makes the form in which the tables store a key. */
  readonly hashKey: (key: string) => string
  /** Makes the form in which earlier releases stored a key. A search for a key has to try both forms. */
  readonly earlierHash: (key: string) => string
  readonly #hasEarlier: boolean
  readonly #known: SqliteStatement
  readonly #remember: SqliteStatement
  readonly #insert: SqliteStatement
  readonly #remove: SqliteStatement
  readonly #postpone: SqliteStatement
  readonly #bringForward: SqliteStatement
  readonly #waitFrom: SqliteStatement
  readonly #makeDue: SqliteStatement
  readonly #restore: SqliteStatement
  readonly #handled: SqliteStatement
  readonly #complete: SqliteStatement
  readonly #completed: SqliteStatement
  readonly #counts: SqliteStatement
  readonly #ids: SqliteStatement
  readonly #get: SqliteStatement

  constructor(database: SqliteDatabase, hashKey: (key: string) => string, earlierHash = hashKey) {
    this.hashKey = hashKey
    this.earlierHash = earlierHash
    this.#hasEarlier =
      earlierHash !== hashKey &&
      database.prepare('SELECT 1 FROM inbox_key WHERE hash < ? LIMIT 1').all(timeMark).length > 0
    this.#known = database.prepare('SELECT 1 FROM inbox_key WHERE hash = ?')
    this.#remember = database.prepare(insertOf('key'))
    this.#insert = database.prepare(insertOf('event'))
    this.#remove = database.prepare('DELETE FROM inbox_event WHERE id = ?')
    this.#handled = database.prepare(insertOf('handled'))
    this.#postpone = database.prepare(
      `UPDATE inbox_event SET attempts = ?, completed = ?, failed = ?, due_at = ?, delay_ms = ?, starts = 0
       WHERE id = ?`,
    )
    this.#restore = database.prepare('UPDATE inbox_event SET completed = ?, failed = ? WHERE id = ?')
    this.#bringForward = database.prepare(
      'UPDATE inbox_event SET due_at = ? + delay_ms WHERE due_at > ? + delay_ms AND id BETWEEN ? AND ?',
    )
    this.#waitFrom = database.prepare('UPDATE inbox_event SET due_at = ?, delay_ms = 0 WHERE id = ?')
    this.#makeDue = database.prepare('UPDATE inbox_event SET due_at = ?, delay_ms = 0 WHERE id = ? AND due_at > ?')
    this.#complete = database.prepare('UPDATE inbox_event SET completed = ? WHERE id = ?')
    this.#completed = database.prepare('SELECT completed FROM inbox_event WHERE id = ?')
    this.#counts = database.prepare(
      `SELECT count(*) AS unfinished, count(CASE WHEN due_at > ? THEN 1 END) AS retrying,
         min(CASE WHEN due_at <= ? THEN max(received_at, due_at) END) AS oldest FROM inbox_event`,
    )
    this.#ids = database.prepare('SELECT id FROM inbox_event WHERE id > ? ORDER BY id LIMIT ?')
    this.#get = database.prepare('SELECT *, starts AS crashes FROM inbox_event WHERE id = ?')
  }

  /** Prepares an event before its transaction. */
  write({ event, receivedAt, trace }: AcceptedEvent): WrittenEvent {
    const keyHash = this.hashKey(event.key)
    const earlierHash = this.#hasEarlier ? this.earlierHash(event.key) : keyHash
    return {
      keyHash,
      earlierHash: earlierHash === keyHash ? undefined : earlierHash,
      media: hashMedia(event.mediaId),
      event: JSON.stringify(event),
      receivedAt: receivedAt.getTime(),
      trace: trace === undefined ? null : JSON.stringify(trace),
    }
  }

  /** Stores an event and returns its row. Returns `undefined` if its key is known. */
  accept(written: WrittenEvent): number | undefined {
    if (this.wasSeenEarlier(written)) return undefined
    const { changes, lastInsertRowid } = this.#remember.run(written.keyHash, Date.now(), written.media)
    if (Number(changes) === 0) return undefined
    const row = Number(lastInsertRowid)
    this.#insert.run(row, written.event, written.receivedAt, written.trace)
    return row
  }

  /** Returns `true` if an earlier release has stored the key of an event, and its form differs from the current one. */
  wasSeenEarlier({ earlierHash }: WrittenEvent): boolean {
    return earlierHash !== undefined && this.#known.all(earlierHash).length > 0
  }

  /** Puts a replayed dead letter back among the events. */
  putBack(
    row: number,
    accepted: AcceptedEvent,
    { completed, failedAttempts }: Omit<EarlierAttempts, 'attempts'>,
  ): void {
    const { event, receivedAt, trace } = this.write(accepted)
    this.#insert.run(row, event, receivedAt, trace)
    this.#restore.run(JSON.stringify(completed), writeFailed(failedAttempts), row)
    this.waitFromNow(row)
  }

  /** Records that a replayed event waits since now, and not since its receipt. */
  waitFromNow(row: number): void {
    this.#waitFrom.run(Date.now(), row)
  }

  /** Removes a handled event, and keeps its record. */
  handled(row: number, record: string): void {
    // A trigger removes the event.
    this.#handled.run(row, record)
  }

  remove(row: number): void {
    this.#remove.run(row)
  }

  postpone(
    row: number,
    { attempts, completed, failedAttempts }: EarlierAttempts,
    due: { at: number; inMs: number },
  ): void {
    const all = JSON.stringify(this.allCompleted(row, completed))
    const [at, inMs] = [Math.ceil(due.at), Math.ceil(due.inMs)]
    this.#postpone.run(attempts, all, writeFailed(failedAttempts), at, inMs, row)
  }

  /** Shortens the wait of these rows' retries to their pauses, if it is longer. */
  bringForward(first = 0, last = Number.MAX_SAFE_INTEGER): void {
    const now = Date.now()
    this.#bringForward.run(now, now, first, last)
  }

  /** Makes the next attempt of an event due. Returns `false` if it is due already, or if there is no such event. */
  makeDue(row: number): boolean {
    const now = Date.now()
    return Number(this.#makeDue.run(now, row, now).changes) > 0
  }

  /** Records completed handlers, in addition to the recorded ones. */
  complete(row: number, handlers: readonly string[]): void {
    this.#complete.run(JSON.stringify(this.allCompleted(row, handlers)), row)
  }

  /**
   * Records, in the transaction of a handler, that the handler has completed. Throws `lease_lost` if the handler must
   * not run.
   */
  completeOnce(row: number, handler: string): void {
    const completed = this.completed(row)
    if (completed === undefined) throw new WebhookError('lease_lost', 'the event has ended')
    if (completed.includes(handler)) throw new WebhookError('lease_lost', 'the handler has completed before')
    this.complete(row, [handler])
  }

  /**
   * Lists the recorded handlers and the given ones. A transaction records its own handler, even if its answer was lost.
   */
  allCompleted(row: number, handlers: readonly string[]): readonly string[] {
    return [...new Set([...(this.completed(row) ?? []), ...handlers])]
  }

  /** Lists the handlers that are recorded as completed. Returns `undefined` if the event has ended. */
  completed(row: number): readonly string[] | undefined {
    const stored = this.#completed.get(row) as { completed: string } | null | undefined
    return stored ? JSON.parse(stored.completed) : undefined
  }

  /** Counts the events that wait to start, and the events that wait for a retry. */
  counts(): Pick<InboxStats, 'waiting' | 'retrying' | 'oldestWaitingAt'> {
    const now = Date.now()
    const { unfinished, retrying, oldest } = this.#counts.get(now, now) as {
      unfinished: number
      retrying: number
      oldest: number | null
    }
    const counts = { waiting: unfinished - retrying, retrying }
    return oldest === null ? counts : { ...counts, oldestWaitingAt: new Date(oldest) }
  }

  /** Lists the rows of the unfinished events, in order of acceptance: the first `limit` after a row, or all. */
  rows(after = 0, limit = -1): number[] {
    return (this.#ids.all(after, limit) as { id: number }[]).map(({ id }) => id)
  }

  /** @throws UnreadableEvent */
  get(row: number): StoredEvent | undefined {
    const stored = this.#get.get(row) as EventRow | undefined
    try {
      return stored && toStoredEvent(stored)
    } catch (error) {
      throw new UnreadableEvent(row, error)
    }
  }
}

const writeFailed = (attempts: readonly FailedAttempt[] = []): string | null =>
  attempts.length === 0 ? null : JSON.stringify(attempts)
