import { WebhookError } from '../../errors.ts'
import type { AcceptedEvent, ExpectationChanges } from '../inbox.ts'
import type { SqliteDatabase } from './database.ts'
import { SqliteExpectations, type WrittenChanges } from './expectations.ts'
import { hashMedia } from './schema.ts'
import { prepareEvents } from './statements.ts'

export interface WrittenEvent {
  readonly keyHash: string
  readonly media: number
  readonly event: string
  readonly receivedAt: number
  readonly trace: string | null
  readonly changes?: WrittenChanges | undefined
}

/** A retry, and the progress to record with it. */
export interface Delay {
  readonly delayMs: number
  readonly completed: readonly string[]
  readonly failed?: string | undefined
  readonly attempts: number
  /** True to clear the suspicion. */
  readonly isHealthy: boolean
}

/** Keys, unfinished events and expectations. Call every method but `write` in a transaction. */
export class SqliteEvents {
  /** Returns a key as the tables store it. */
  readonly hashKey: (key: string) => string
  readonly expectations: SqliteExpectations
  readonly #sql: ReturnType<typeof prepareEvents>

  constructor(database: SqliteDatabase, hashKey: (key: string) => string) {
    this.hashKey = hashKey
    this.expectations = new SqliteExpectations(database, hashKey)
    this.#sql = prepareEvents(database)
  }

  write({ event, receivedAt, trace }: AcceptedEvent, changes?: ExpectationChanges): WrittenEvent {
    return {
      keyHash: this.hashKey(event.key),
      media: hashMedia(event.mediaId),
      event: JSON.stringify(event),
      receivedAt: receivedAt.getTime(),
      trace: trace === undefined ? null : JSON.stringify(trace),
      changes: changes && this.expectations.write(event.mediaId, changes),
    }
  }

  /** Stores an event and returns its id. `undefined`: the key is known. */
  accept(written: WrittenEvent): number | undefined {
    const { changes, lastInsertRowid } = this.#sql.remember.run(written.keyHash, Date.now(), written.media)
    if (Number(changes) === 0) return undefined
    const id = Number(lastInsertRowid)
    this.#sql.insert.run(id, written.event, written.receivedAt, written.trace)
    if (written.changes !== undefined) this.expectations.apply(written.changes)
    return id
  }

  /** Replaces up to `limit` overdue expectations with their events. Returns the ids of the new ones. */
  acceptDue(limit: number): readonly number[] {
    const due = this.expectations.takeDue(limit)
    return due.flatMap(
      ({ hash: keyHash, due_at: receivedAt, media, event, trace }) =>
        this.accept({ keyHash, media, event, receivedAt, trace }) ?? [],
    )
  }

  /** Makes the event of a replayed unreadable delivery due now. */
  replayed(id: number): void {
    const now = Date.now()
    this.#sql.replayed.run(now, now, id)
  }

  handled(id: number, record: string): void {
    this.#sql.handled.run(id, record)
  }

  remove(id: number): void {
    this.#sql.remove.run(id)
  }

  delay(id: number, { delayMs, completed, failed = undefined, attempts, isHealthy }: Delay): void {
    const now = Date.now()
    const all = JSON.stringify(this.allCompleted(id, completed))
    this.#sql.delay.run(Math.ceil(now + delayMs), now, attempts, all, failed ?? null, Number(!isHealthy), id)
  }

  complete(id: number, handlers: readonly string[]): void {
    this.#sql.complete.run(JSON.stringify(this.allCompleted(id, handlers)), id)
  }

  /**
   * Records a handler as completed, in the transaction of the handler.
   * @throws WebhookError `lease_lost` if the handler must not run
   */
  completeOnce(id: number, handler: string): void {
    const completed = this.completed(id)
    if (completed === undefined) throw new WebhookError('lease_lost', 'the event has ended')
    if (completed.includes(handler)) throw new WebhookError('lease_lost', 'the handler has already completed')
    this.complete(id, [handler])
  }

  /** Recorded and given handlers. A transaction records its handler even if its answer was lost. */
  allCompleted(id: number, handlers: readonly string[]): readonly string[] {
    return [...new Set([...(this.completed(id) ?? []), ...handlers])]
  }

  /** Handlers recorded as completed. `undefined`: the event has ended. */
  completed(id: number): readonly string[] | undefined {
    const stored = this.#sql.completed.get(id) as { completed: string } | null | undefined
    return stored ? JSON.parse(stored.completed) : undefined
  }
}
