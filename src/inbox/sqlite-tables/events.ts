import { WebhookError } from '../../errors.ts'
import type { EarlierAttempts } from '../engine/job.ts'
import type { AcceptedEvent, Expectations } from '../inbox.ts'
import type { FailedAttempt, InboxStats } from '../reading.ts'
import type { SqliteDatabase } from './database.ts'
import { SqliteExpectations, type WrittenEffects } from './expectations.ts'
import type { EventRow } from './rows.ts'
import { hashMedia } from './schema.ts'
import { prepareEvents } from './statements.ts'

/** An event that is to be stored, in the form in which the tables store it. */
export interface WrittenEvent {
  readonly keyHash: string
  readonly media: number
  readonly event: string
  readonly receivedAt: number
  readonly trace: string | null
  /** Absent if it has none on expectations. */
  readonly effects?: WrittenEffects | undefined
  /** Its row, once it is in the tables; `undefined` if its key was seen before. */
  row: number | undefined
}

/** The tables of the remembered keys, the waiting events and the expectations. Call each method in a transaction. */
export class SqliteEvents {
  /** Makes the form in which the tables store a key. */
  readonly hashKey: (key: string) => string
  readonly expectations: SqliteExpectations
  readonly #sql: ReturnType<typeof prepareEvents>

  constructor(database: SqliteDatabase, hashKey: (key: string) => string) {
    this.hashKey = hashKey
    this.expectations = new SqliteExpectations(database, hashKey)
    this.#sql = prepareEvents(database)
  }

  /** Returns the row of an event, finished or not. */
  rowOf(key: string): number | undefined {
    return this.rowOfHash(this.hashKey(key))
  }

  protected rowOfHash(hash: string): number | undefined {
    return (this.#sql.rowOf.get(hash) as { id: number } | null | undefined)?.id
  }

  /** Prepares an event before its transaction. */
  write({ event, receivedAt, trace }: AcceptedEvent, effects?: Expectations): WrittenEvent {
    return {
      keyHash: this.hashKey(event.key),
      media: hashMedia(event.mediaId),
      event: JSON.stringify(event),
      receivedAt: receivedAt.getTime(),
      trace: trace === undefined ? null : JSON.stringify(trace),
      effects: effects && this.expectations.write(event.mediaId, effects),
      row: undefined,
    }
  }

  /** Stores an event and returns its row. Returns `undefined` if its key is known. */
  accept(written: WrittenEvent): number | undefined {
    const { changes, lastInsertRowid } = this.#sql.remember.run(written.keyHash, Date.now(), written.media)
    if (Number(changes) === 0) return undefined
    const row = Number(lastInsertRowid)
    this.#sql.insert.run(row, written.event, written.receivedAt, written.trace)
    if (written.effects !== undefined) this.expectations.take(written.effects)
    return row
  }

  /** Stores up to `limit` overdue events in place of their expectations, and returns their rows. */
  acceptDue(limit: number): readonly number[] {
    const due = this.expectations.takeDue(limit)
    const rows = due.map(({ hash: keyHash, due_at: receivedAt, media, event, trace }) =>
      this.accept({ keyHash, media, event, receivedAt, trace, row: undefined }),
    )
    return rows.filter((row) => row !== undefined)
  }

  /** Records that a replayed event waits since now, and not since its receipt. */
  waitFromNow(row: number): void {
    this.#sql.waitFrom.run(Date.now(), row)
  }

  /** Removes a handled event, and keeps its record. */
  handled(row: number, record: string): void {
    this.#sql.handled.run(row, record)
  }

  remove(row: number): void {
    this.#sql.remove.run(row)
  }

  postpone(
    row: number,
    { attempts, completed, failedAttempts }: EarlierAttempts,
    due: { at: number; inMs: number },
  ): void {
    const all = JSON.stringify(this.allCompleted(row, completed))
    const [at, inMs] = [Math.ceil(due.at), Math.ceil(due.inMs)]
    this.#sql.postpone.run(attempts, all, writeFailed(failedAttempts), at, inMs, row)
  }

  /** Shortens the wait for a retry to its delay, if it is longer. */
  bringForward(row: number): void {
    const now = Date.now()
    this.#sql.bringForward.run(now, now, row)
  }

  /** Makes the next attempt of an event due. Returns `false` if it is due already, or if there is no such event. */
  makeDue(row: number): boolean {
    const now = Date.now()
    return Number(this.#sql.makeDue.run(now, row, now).changes) > 0
  }

  /** Asks the process that handles the file for the next attempt of an event. */
  askRetry(key: string): boolean {
    const row = this.rowOf(key)
    if (row === undefined || !this.makeDue(row)) return false
    this.#sql.askRetry.run(row)
    return true
  }

  /** Lists the rows of the events that another process has asked for. */
  askedRetries(): ReadonlySet<number> {
    return new Set((this.#sql.askedRetries.all() as { id: number }[]).map(({ id }) => id))
  }

  forgetRetries(rows: Iterable<number>): void {
    for (const row of rows) this.#sql.forgetRetry.run(row)
  }

  /** Records completed handlers, in addition to the recorded ones. */
  complete(row: number, handlers: readonly string[]): void {
    this.#sql.complete.run(JSON.stringify(this.allCompleted(row, handlers)), row)
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
    const stored = this.#sql.completed.get(row) as { completed: string } | null | undefined
    return stored ? JSON.parse(stored.completed) : undefined
  }

  /** Counts the events that wait to start, and the events that wait for a retry. */
  counts(): Pick<InboxStats, 'waiting' | 'retrying' | 'oldestWaitingAt'> {
    const now = Date.now()
    const counts = this.#sql.counts.get(now, now) as { unfinished: number; retrying: number; oldest: number | null }
    const { unfinished, retrying, oldest } = counts
    return { waiting: unfinished - retrying, retrying, ...(oldest !== null && { oldestWaitingAt: new Date(oldest) }) }
  }

  /** Lists the rows of the unfinished events, in order of acceptance: the first `limit` after a row, or all. */
  rows(after = 0, limit = -1): number[] {
    return (this.#sql.ids.all(after, limit) as { id: number }[]).map(({ id }) => id)
  }

  get(row: number): EventRow | undefined {
    return (this.#sql.get.get(row) as EventRow | null | undefined) ?? undefined
  }
}

export const writeFailed = (attempts: readonly FailedAttempt[] = []): string | null =>
  attempts.length === 0 ? null : JSON.stringify(attempts)
