import { WebhookError } from '../../errors.ts'
import type { Acceptance } from '../inbox.ts'
import type {
  Claim,
  ClaimRequest,
  Expiry,
  HeldEvent,
  Media,
  NewEvent,
  NewUnreadable,
  OverdueExpectation,
  RecordedLane,
  SettledEvent,
  SettledLane,
  Statements,
} from '../sql/database.ts'
import { Accepting } from './accepting.ts'
import type { SqliteDatabase } from './connection.ts'
import { Counter } from './counter.ts'
import { Expiration } from './expiration.ts'
import { LaneReader, type LaneRow } from './lane-reader.ts'
import { Settling } from './settling.ts'
import * as sql from './statements.ts'
import type { SqliteStep } from './step.ts'

export interface StepsOptions {
  readonly isStrict: boolean
  readonly ttlMs: number
  /** Events that may wait, besides those that run. */
  readonly maxWaiting: number
  readonly concurrency: number
}

/** Delay before overdue expectations are looked for, while there is no room for them (ms). */
const fullRetryMs = 1_000

/** Lanes that one claim brings: about a millisecond, which deliveries may have to wait. */
const lanesPerTurn = 64

/** The steps of an inbox in SQLite, for the one process that has it open. */
export class SqliteSteps implements Statements {
  readonly counter: Counter
  readonly #options: StepsOptions
  readonly #accepting: Accepting
  readonly #settling: Settling
  readonly #reader: LaneReader
  readonly #expiration: Expiration
  readonly #sql: ReturnType<typeof prepare>
  /** Lanes of a claim whose commit failed, or is under way. */
  #unanswered: readonly LaneRow[] = []
  /** The latest time seen: the clock was set back if it is not reached. */
  #latest = 0

  constructor(database: SqliteDatabase, options: StepsOptions) {
    this.#options = options
    this.counter = new Counter(database)
    this.#accepting = new Accepting(database, this.counter, options.isStrict)
    this.#settling = new Settling(database, this.counter, options.isStrict)
    this.#reader = new LaneReader(database, options.isStrict)
    this.#expiration = new Expiration(database, options.ttlMs)
    this.#sql = prepare(database)
  }

  #isFull(): boolean {
    const { unfinished } = this.counter
    const { maxWaiting } = this.#options
    return unfinished >= maxWaiting && unfinished - this.#running() >= maxWaiting
  }

  #running(): number {
    const { held } = this.#sql.held.get() as { held: number }
    return Math.min(held, this.#options.concurrency)
  }

  accept(events: readonly NewEvent[]): SqliteStep<readonly Acceptance[]> {
    return {
      run: () =>
        events.map((event) => (this.#isFull() ? this.#accepting.refuse(event) : this.#accepting.accept(event))),
    }
  }

  overdue(limit: number): SqliteStep<{ overdue: readonly OverdueExpectation[]; nextInMs: number }> {
    const run = () => {
      const now = Date.now()
      // Deliveries get the other half of the room.
      const waiting = this.counter.unfinished - this.#running()
      const room = Math.max(0, Math.ceil(this.#options.maxWaiting / 2) - waiting)
      const found = this.#sql.overdue.all(now, Math.min(limit, room)) as { hash: string; media: number }[]
      const isCut = room < limit && found.length === room
      const { next } = this.#sql.nextOverdue.get(isCut ? 0 : now) as { next: number | null }
      return {
        overdue: found.map(({ hash, media }) => ({ hash, media: `${media}`, place: undefined })),
        nextInMs: next === null ? Number.POSITIVE_INFINITY : Math.max(next - now, room === 0 ? fullRetryMs : 0),
      }
    }
    return { run, isLight: true }
  }

  fire(overdue: readonly OverdueExpectation[]): SqliteStep<number> {
    return { run: () => overdue.filter(({ hash }) => this.#accepting.fire(hash)).length }
  }

  claim({ owner, lanes, marked }: ClaimRequest): SqliteStep<Claim> {
    const run = () => {
      const now = Date.now()
      for (const { media, turn } of this.#unanswered) this.#sql.giveBack.run(now, media, owner, turn)
      const limit = Math.min(lanes, lanesPerTurn)
      const unmarked = this.#sql.free.all(now, limit) as LaneRow[]
      const free = [...unmarked, ...(this.#sql.marked.all(now, marked) as LaneRow[])]
      const isCut = limit < lanes && unmarked.length === limit
      for (const { media } of free) this.#sql.take.run(owner, media)
      const taken = free.map((row) => ({ ...row, turn: row.turn + 1 }))
      this.#unanswered = taken
      const { next } = this.#sql.next.get(now, now) as { next: number | null }
      return {
        lanes: this.#reader.read(taken),
        nextInMs: isCut ? 0 : next === null ? Number.POSITIVE_INFINITY : next - now,
        isHeldUp: false,
      }
    }
    const committed = () => {
      this.#unanswered = []
    }
    // If the power fails, the lane was never claimed.
    return { run, committed, isLight: true }
  }

  settle(
    owner: string,
    lanes: readonly SettledLane[],
    events: readonly SettledEvent[],
  ): SqliteStep<readonly RecordedLane[]> {
    return { run: () => this.#settling.settle(owner, lanes, events) }
  }

  count({ owner, media, turn, id }: HeldEvent, from: number, to: number): SqliteStep<boolean> {
    return { run: () => Number(this.#sql.count.run(to, id, from, to, Number(media), owner, turn).changes) > 0 }
  }

  join(): SqliteStep<void> {
    return {
      run: () => {
        this.#sql.join.run(Date.now())
        this.#correctClock()
      },
    }
  }

  #correctClock(): void {
    const now = Date.now()
    this.#latest = now
    this.#sql.correctLanes.run(now, now, now)
    this.#sql.correctEvents.run(now, now, now)
    this.#sql.correctExpectations.run(now, now, now)
  }

  leave(owner: string): SqliteStep<void> {
    return { run: () => void this.#sql.leave.run(Date.now(), owner) }
  }

  /** Gives all lanes back, in the caller's transaction. */
  freeAll(): void {
    this.#sql.freeAll.run(Date.now())
  }

  replay(dead: readonly { readonly id: number; readonly media: Media }[]): SqliteStep<readonly number[]> {
    return {
      run: () => {
        if (this.#isFull()) return overloaded()
        return dead.flatMap(({ id, media }) => (this.#accepting.replay(id, Number(media)) ? [id] : []))
      },
    }
  }

  keep(unreadable: NewUnreadable): SqliteStep<void> {
    return { run: () => this.#accepting.keep(unreadable) }
  }

  replace(unreadable: string, event: NewEvent): SqliteStep<Acceptance | 'gone'> {
    return {
      run: () => {
        if (this.#isFull()) return overloaded()
        if (Number(this.#sql.removeUnreadable.run(unreadable).changes) === 0) return 'gone'
        return this.#accepting.accept(event, Date.now())
      },
    }
  }

  retry(hash: string): SqliteStep<boolean> {
    return {
      run: () => {
        const now = Date.now()
        const found = this.#sql.retry.get(hash, now) as { id: number; media: number } | null | undefined
        if (!found) return false
        this.#sql.makeDue.run(now, now, found.id)
        this.#sql.wake.run(now, found.media)
        return true
      },
    }
  }

  expire(): SqliteStep<Expiry> {
    return {
      run: () => {
        const now = Date.now()
        if (now < this.#latest) this.#correctClock()
        this.#latest = now
        return this.#expiration.next()
      },
    }
  }
}

const overloaded = () => new WebhookError('overloaded', 'too many events are waiting')

const prepare = (database: SqliteDatabase) => ({
  held: database.prepare(sql.claim.held),
  overdue: database.prepare(sql.overdue.find),
  nextOverdue: database.prepare(sql.overdue.next),
  free: database.prepare(sql.claim.find(false)),
  marked: database.prepare(sql.claim.find(true)),
  take: database.prepare(sql.claim.take),
  giveBack: database.prepare(sql.claim.giveBack),
  next: database.prepare(sql.claim.next),
  count: database.prepare(sql.count),
  join: database.prepare(sql.process.join),
  leave: database.prepare(sql.process.leave),
  freeAll: database.prepare(sql.process.freeAll),
  correctLanes: database.prepare(sql.correctClock.lanes),
  correctEvents: database.prepare(sql.correctClock.events),
  correctExpectations: database.prepare(sql.correctClock.expectations),
  removeUnreadable: database.prepare(sql.replay.remove),
  retry: database.prepare(sql.retry.find),
  makeDue: database.prepare(sql.retry.due),
  wake: database.prepare(sql.retry.wake),
})
