import type { ExpectationChanges } from '../inbox.ts'
import type { SqliteDatabase } from './database.ts'
import { hashMedia } from './schema.ts'
import { prepareExpectations } from './statements.ts'

export interface WrittenChanges {
  readonly at: number
  readonly ends: readonly string[]
  readonly begins: readonly WrittenExpectation[]
}

interface WrittenExpectation {
  /** Hash of rule and media item. */
  readonly watch: string
  readonly rule: string
  readonly dueAt: number
  readonly hash: string
  readonly media: number
  readonly event: string
  readonly trace: string | null
}

interface SqliteExpectationRow {
  readonly id: number
  readonly rule: string
  readonly began_at: number
  readonly due_at: number
  readonly hash: string
  readonly media: number
  readonly event: string
  readonly trace: string | null
}

/**
 * Open expectations and remembered ends. An expectation carries its overdue event, ready for the event table. Call
 * `apply` and `takeDue` in a transaction.
 */
export class SqliteExpectations {
  readonly #hashText: (text: string) => string
  readonly #sql: ReturnType<typeof prepareExpectations>

  constructor(database: SqliteDatabase, hashText: (text: string) => string) {
    this.#hashText = hashText
    this.#sql = prepareExpectations(database)
  }

  write(mediaId: string, { at, begins, ends }: ExpectationChanges): WrittenChanges {
    // JSON, because a rule can have any name, and UTF-8 would merge all lone surrogates.
    const watchOf = (rule: string) => this.#hashText(JSON.stringify([rule, mediaId]))
    return {
      at: at.getTime(),
      ends: ends.map(watchOf),
      begins: begins.map(({ rule, dueAt, overdue: { event, trace } }) => ({
        watch: watchOf(rule),
        rule: JSON.stringify(rule),
        dueAt: dueAt.getTime(),
        hash: this.#hashText(event.key),
        media: hashMedia(event.mediaId),
        event: JSON.stringify(event),
        trace: trace === undefined ? null : JSON.stringify(trace),
      })),
    }
  }

  apply({ at, begins, ends }: WrittenChanges): void {
    for (const watch of ends) {
      this.#sql.end.run(watch, at)
      this.#sql.remember.run(watch, at, Date.now())
    }
    for (const { watch, rule, dueAt, hash, media, event, trace } of begins)
      this.#sql.begin.run(watch, rule, at, dueAt, hash, media, event, trace, watch, at)
  }

  /** Next deadline (ms since the epoch), Infinity if none is open. */
  nextAt(): number {
    const { next } = this.#sql.next.get() as { next: number | null }
    return next ?? Number.POSITIVE_INFINITY
  }

  /** Removes and returns up to `limit` expectations past their deadline. */
  takeDue(limit: number): readonly SqliteExpectationRow[] {
    const due = this.#sql.due.all(Date.now(), limit) as SqliteExpectationRow[]
    for (const { id } of due) this.#sql.remove.run(id)
    return due
  }
}
