import type { ExpectationChanges } from '../inbox.ts'
import type { SqliteDatabase } from './database.ts'
import { hashMedia } from './schema.ts'
import { prepareExpectations } from './statements.ts'

/** The effects of an event on expectations, in the form in which the tables store them. */
export interface WrittenChanges {
  readonly at: number
  /** The hash of the rule and the media item of each end. */
  readonly ends: readonly string[]
  readonly begins: readonly WrittenExpectation[]
}

interface WrittenExpectation {
  /** A hash of its rule and its media item. */
  readonly watch: string
  readonly rule: string
  readonly dueAt: number
  readonly hash: string
  readonly media: number
  readonly event: string
  readonly trace: string | null
}

interface ExpectationRow {
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
 * The tables of the open expectations and of the remembered ends. An expectation has its overdue event in the form of the
 * events' table, to which it is moved at its deadline. Call each method that writes in a transaction.
 */
export class SqliteExpectations {
  readonly #hashText: (text: string) => string
  readonly #sql: ReturnType<typeof prepareExpectations>

  /** @param hashText makes the form in which the tables store a text of any length */
  constructor(database: SqliteDatabase, hashText: (text: string) => string) {
    this.#hashText = hashText
    this.#sql = prepareExpectations(database)
  }

  /** Prepares the effects of an event before its transaction. */
  write(mediaId: string, { at, begins, ends }: ExpectationChanges): WrittenChanges {
    // JSON, since a rule can have any name, and lone surrogates would all become one character.
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

  /** Takes the effects of an event that has been stored. */
  apply({ at, begins, ends }: WrittenChanges): void {
    for (const watch of ends) {
      this.#sql.end.run(watch, at)
      this.#sql.remember.run(watch, at, Date.now())
    }
    for (const { watch, rule, dueAt, hash, media, event, trace } of begins)
      this.#sql.begin.run(watch, rule, at, dueAt, hash, media, event, trace, watch, at)
  }

  /** The first deadline, in ms since the epoch; infinite if none is open. */
  nextAt(): number {
    const { next } = this.#sql.next.get() as { next: number | null }
    return next ?? Number.POSITIVE_INFINITY
  }

  /** Removes up to `limit` expectations whose deadline has passed, and returns them. */
  takeDue(limit: number): readonly ExpectationRow[] {
    const due = this.#sql.due.all(Date.now(), limit) as ExpectationRow[]
    for (const { id } of due) this.#sql.remove.run(id)
    return due
  }
}
