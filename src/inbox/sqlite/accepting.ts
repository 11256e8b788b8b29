import type { Acceptance } from '../inbox.ts'
import type { NewEvent, NewUnreadable, StoredChanges } from '../sql/database.ts'
import type { SqliteDatabase } from './connection.ts'
import type { Counter } from './counter.ts'
import * as sql from './statements.ts'

interface ExpectationRow {
  readonly hash: string
  readonly media: number
  readonly event: string
  readonly head: string
  readonly trace: string | null
  readonly owed: string
  readonly due_at: number
}

/** What makes events, in the caller's transaction: deliveries, overdue expectations and replays. */
export class Accepting {
  readonly #counter: Counter
  readonly #sql: ReturnType<typeof prepare>

  constructor(database: SqliteDatabase, counter: Counter, isStrict: boolean) {
    this.#counter = counter
    this.#sql = prepare(database, isStrict)
  }

  /** @param since when an event began to wait that was received earlier */
  accept(accepted: NewEvent, since: number | null = null): Acceptance {
    const { hash, media, event, head, trace, receivedAt, owed, changes } = accepted
    const { next } = this.#counter
    const lane = Number(media)
    const texts = [event, head, trace ?? null]
    const stored = this.#sql.insert.run(next, hash, lane, ...texts, receivedAt, since, owed ?? null)
    if (Number(stored.changes) === 0) return 'duplicate'
    this.#counter.stored()
    this.#sql.wake.run(lane, Date.now())
    if (changes !== undefined) this.#apply(changes)
    return 'accepted'
  }

  /** The answer to an event for which there is no room. */
  refuse({ hash }: NewEvent): Acceptance {
    return this.#sql.known.get(hash) ? 'duplicate' : 'overloaded'
  }

  #apply({ at, begins, ends }: StoredChanges): void {
    const now = Date.now()
    for (const subject of ends) {
      this.#sql.end.run(subject, at, now)
      this.#sql.removeEnded.run(subject, at)
    }
    for (const { hash, subject, media, rule, beganAt, dueAt, event, head, trace, owed } of begins) {
      const row = [hash, subject, Number(media), rule, beganAt, dueAt, event, head, trace ?? null, owed, now]
      this.#sql.begin.run(...row, subject, beganAt)
    }
  }

  /** Turns an overdue expectation into its event. False if it has ended. */
  fire(hash: string): boolean {
    const found = this.#sql.expectation.get(hash) as ExpectationRow | null | undefined
    if (!found) return false
    this.#sql.remove.run(hash)
    const { media, event, head, trace, owed, due_at: receivedAt } = found
    const changes = undefined
    return (
      this.accept({ hash, media: `${media}`, event, head, trace: trace ?? undefined, receivedAt, owed, changes }) ===
      'accepted'
    )
  }

  keep({ hash, head, body }: NewUnreadable): void {
    const now = Date.now()
    const stored = this.#sql.keep.run(this.#counter.next, hash, head, body, now, now)
    if (Number(stored.changes) > 0) this.#counter.stored(false)
  }

  /** Makes a dead letter an event again. False if it is gone. */
  replay(id: number, media: number): boolean {
    const now = Date.now()
    if (Number(this.#sql.again.run(this.#counter.next, now, id).changes) === 0) return false
    this.#counter.stored()
    this.#sql.wake.run(media, now)
    return true
  }
}

const prepare = (database: SqliteDatabase, isStrict: boolean) => ({
  insert: database.prepare(sql.accept.insert),
  known: database.prepare(sql.accept.known),
  wake: database.prepare(sql.accept.wake(isStrict)),
  end: database.prepare(sql.accept.end),
  removeEnded: database.prepare(sql.accept.removeEnded),
  begin: database.prepare(sql.accept.begin),
  expectation: database.prepare(sql.overdue.get),
  remove: database.prepare(sql.overdue.remove),
  keep: database.prepare(sql.keep),
  again: database.prepare(sql.replay.again),
})
