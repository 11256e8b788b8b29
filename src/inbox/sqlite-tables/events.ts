import { WebhookError } from '../../errors.ts'
import type { AcceptedEvent, ExpectationChanges } from '../inbox.ts'
import type { SqliteDatabase } from './database.ts'
import { SqliteExpectations, type WrittenChanges } from './expectations.ts'
import { hashMedia } from './schema.ts'
import { prepareEvents } from './statements.ts'

/** An event to store, in the form of the tables. */
export interface WrittenEvent {
  readonly keyHash: string
  readonly media: number
  readonly event: string
  readonly receivedAt: number
  readonly trace: string | null
  /** Absent if it changes no expectations. */
  readonly changes?: WrittenChanges | undefined
  /** Its id, once it is stored; `undefined` if its key was seen before. */
  id: number | undefined
}

/** When the next attempt of an event is due, and what the last one has changed. */
export interface Delay {
  readonly delayMs: number
  readonly completed: readonly string[]
  /** JSON of its failed attempts. */
  readonly failed?: string | undefined
  /** Number of attempts so far. */
  readonly attempts: number
  /** True if the event is no suspect any more. */
  readonly isHealthy: boolean
}

/** The tables of the remembered keys, the unfinished events and the expectations. Call each method in a transaction. */
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

  protected idOfHash(hash: string): number | undefined {
    return (this.#sql.idOf.get(hash) as { id: number } | null | undefined)?.id
  }

  /** Prepares an event before its transaction. */
  write({ event, receivedAt, trace }: AcceptedEvent, changes?: ExpectationChanges): WrittenEvent {
    return {
      keyHash: this.hashKey(event.key),
      media: hashMedia(event.mediaId),
      event: JSON.stringify(event),
      receivedAt: receivedAt.getTime(),
      trace: trace === undefined ? null : JSON.stringify(trace),
      changes: changes && this.expectations.write(event.mediaId, changes),
      id: undefined,
    }
  }

  /** Stores an event and returns its id. `undefined`: its key is known. */
  accept(written: WrittenEvent): number | undefined {
    const { changes, lastInsertRowid } = this.#sql.remember.run(written.keyHash, Date.now(), written.media)
    if (Number(changes) === 0) return undefined
    const id = Number(lastInsertRowid)
    this.#sql.insert.run(id, written.event, written.receivedAt, written.trace)
    if (written.changes !== undefined) this.expectations.apply(written.changes)
    return id
  }

  /** Stores up to `limit` overdue events in place of their expectations. Returns the ids of the new ones. */
  acceptDue(limit: number): readonly number[] {
    const due = this.expectations.takeDue(limit)
    return due.flatMap(
      ({ hash: keyHash, due_at: receivedAt, media, event, trace }) =>
        this.accept({ keyHash, media, event, receivedAt, trace, id: undefined }) ?? [],
    )
  }

  /** Makes an event due now, whose unreadable delivery was replayed. */
  replayed(id: number): void {
    const now = Date.now()
    this.#sql.replayed.run(now, now, id)
  }

  /** Removes a handled event, and keeps its record. */
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

  /** Records completed handlers, in addition to the recorded ones. */
  complete(id: number, handlers: readonly string[]): void {
    this.#sql.complete.run(JSON.stringify(this.allCompleted(id, handlers)), id)
  }

  /**
   * Records, in the transaction of a handler, that the handler has completed.
   * @throws WebhookError `lease_lost` if the handler must not run
   */
  completeOnce(id: number, handler: string): void {
    const completed = this.completed(id)
    if (completed === undefined) throw new WebhookError('lease_lost', 'the event has ended')
    if (completed.includes(handler)) throw new WebhookError('lease_lost', 'the handler has completed before')
    this.complete(id, [handler])
  }

  /** Lists the recorded handlers and the given ones. A transaction records its own handler, even if its answer was lost. */
  allCompleted(id: number, handlers: readonly string[]): readonly string[] {
    return [...new Set([...(this.completed(id) ?? []), ...handlers])]
  }

  /** Lists the handlers that are recorded as completed. `undefined`: the event has ended. */
  completed(id: number): readonly string[] | undefined {
    const stored = this.#sql.completed.get(id) as { completed: string } | null | undefined
    return stored ? JSON.parse(stored.completed) : undefined
  }
}
