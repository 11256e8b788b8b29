import type { Acceptance } from '../inbox.ts'
import type { NewEvent, NewUnreadable, StoredChanges } from '../sql/database.ts'
import { prepareAll, type SqliteDatabase } from './connection.ts'
import * as sql from './statements.ts'

interface ExpectationRow extends Pick<NewEvent, 'hash' | 'event' | 'head' | 'owed' | 'receivedAt'> {
  readonly media: number
  readonly trace: string | null
}

interface OverdueRow {
  readonly hash: string
  readonly media: number
  readonly offered: string | null
}

/** The next id, and the number of unfinished events. Good within a transaction. */
export class Counter {
  next = 0
  unfinished = 0
  readonly #sql

  constructor(database: SqliteDatabase) {
    this.#sql = prepareAll(database, sql.counter)
  }

  /** Runs a function in the caller's transaction, and stores what it counted. */
  keep<T>(run: () => T): T {
    const { next, unfinished } = this.#sql.read.get() as Pick<Counter, 'next' | 'unfinished'>
    Object.assign(this, { next, unfinished })
    const result = run()
    if (this.next !== next || this.unfinished !== unfinished) this.#sql.write.run(this.next, this.unfinished)
    return result
  }
}

/** What makes events, in the caller's transaction: deliveries, overdue expectations and replays. */
export class Accepting {
  readonly #counter: Counter
  readonly #now: () => number
  readonly #sql

  /** @param now the time, to be written */
  constructor(database: SqliteDatabase, counter: Counter, isStrict: boolean, now: () => number) {
    this.#counter = counter
    this.#now = now
    this.#sql = prepareAll(database, { ...sql.accept(isStrict), ...sql.expectations })
  }

  /** @param since when the event began to wait, if later than its receipt (a replay) */
  accept(accepted: NewEvent, since: number | null = null): Acceptance {
    const { hash, event, head, trace, receivedAt, owed, changes } = accepted
    const { next } = this.#counter
    const media = Number(accepted.media)
    const row = [hash, event, head, trace ?? null, receivedAt, since, owed ?? null]
    const stored = this.#sql.insert.run(next, media, next, ...row)
    if (Number(stored.changes) === 0) return 'duplicate'
    this.#sql.wake.run(next, media, this.#now())
    this.#stored()
    if (changes !== undefined) this.#apply(changes)
    return 'accepted'
  }

  #stored(): void {
    this.#counter.next++
    this.#counter.unfinished++
  }

  /** The answer to an event for which there is no room. */
  refuse({ hash }: NewEvent): Acceptance {
    return this.#sql.known.get(hash) ? 'duplicate' : 'overloaded'
  }

  #apply({ at, begins, ends }: StoredChanges): void {
    const now = this.#now()
    for (const subject of ends) {
      this.#sql.end.run(subject, at, now)
      this.#sql.removeEnded.run(subject, at)
    }
    for (const { hash, subject, media, rule, beganAt, dueAt, event, head, trace, owed } of begins) {
      const row = [hash, subject, Number(media), rule, beganAt, dueAt, event, head, trace ?? null, owed, now]
      this.#sql.begin.run(...row, subject, beganAt)
    }
  }

  /** Hashes and lanes of expectations past their deadline. */
  overdue(limit: number, now: number): readonly OverdueRow[] {
    return this.#sql.overdue.all(now, limit) as OverdueRow[]
  }

  /** The first deadline after this time. */
  nextDeadline(after: number): number | null {
    return (this.#sql.next.get(after) as { next: number | null }).next
  }

  /** Turns an overdue expectation into its event. False if it has ended. */
  fire(hash: string, changes: StoredChanges | undefined): boolean {
    const found = this.#sql.get.get(hash) as ExpectationRow | null | undefined
    if (!found) return false
    this.#sql.remove.run(hash)
    const { media, trace, ...event } = found
    return this.accept({ ...event, media: `${media}`, trace: trace ?? undefined, changes }) === 'accepted'
  }

  keep({ hash, head, body }: NewUnreadable): void {
    const now = this.#now()
    const stored = this.#sql.keep.run(this.#counter.next, hash, head, body, now, now)
    this.#counter.next += Number(stored.changes)
  }

  /** Stores the events of an unreadable delivery in its place. */
  replace(unreadable: string, events: readonly NewEvent[]): readonly Acceptance[] | 'gone' {
    if (Number(this.#sql.removeUnreadable.run(unreadable).changes) === 0) return 'gone'
    return events.map((event) => this.accept(event, this.#now()))
  }

  /** Makes a dead letter an event again. False if it is gone. */
  replay(id: number, media: number): boolean {
    const now = this.#now()
    if (Number(this.#sql.replay.run(this.#counter.next, now, id).changes) === 0) return false
    this.#sql.wakeAgain.run(now, media, now)
    this.#stored()
    return true
  }
}
