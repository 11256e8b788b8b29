import { WebhookError } from '../../errors.ts'
import type { Acceptance } from '../inbox.ts'
import type {
  ClaimedLanes,
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
  Step,
  Steps,
} from '../sql/database.ts'
import { Accepting, Counter } from './accepting.ts'
import { prepareAll, type SqliteDatabase } from './connection.ts'
import { Expiration } from './expiration.ts'
import { LaneReader, type LaneRow } from './lane-reader.ts'
import { Settling } from './settling.ts'
import * as sql from './statements.ts'

/** A step of an inbox in SQLite: a function that runs in a transaction, and can run again if that fails. */
export interface SqliteStep<out Result> extends Step<Result> {
  /** Returns an error to reject with: throwing would roll back the other steps of the transaction. */
  run(): Result | WebhookError
  /** Called after the commit. */
  committed?(): void
  /** True if it may be lost with the power, as long as nothing that depends on it is kept. */
  readonly isLight?: boolean
  /** True if nobody waits for its commit: it shares that of the next deliveries. */
  readonly canWait?: boolean
}

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
export class SqliteSteps implements Steps {
  readonly counter: Counter
  readonly #options: StepsOptions
  readonly #accepting: Accepting
  readonly #settling: Settling
  readonly #reader: LaneReader
  readonly #expiration: Expiration
  readonly #sql
  /** Lanes of claims whose commit failed, or is under way, by lane and turn: any of these commits may have worked. */
  readonly #unanswered = new Map<string, LaneRow>()
  /** The latest time that was written: the clock was set back if it is not reached. */
  #latest = 0

  constructor(database: SqliteDatabase, options: StepsOptions) {
    const { isStrict, ttlMs } = options
    this.#options = options
    this.counter = new Counter(database)
    this.#accepting = new Accepting(database, this.counter, isStrict, () => this.#now())
    this.#settling = new Settling(database, this.counter, isStrict)
    this.#reader = new LaneReader(database, isStrict)
    this.#expiration = new Expiration(database, ttlMs)
    const texts = { ...sql.claim, ...sql.lanes, ...sql.correctClock, ...sql.retry, count: sql.count }
    this.#sql = prepareAll(database, texts)
  }

  /** The time, to be written. Remembered, since a clock may be ahead for a moment only. */
  #now(): number {
    const now = Date.now()
    this.#latest = Math.max(this.#latest, now)
    return now
  }

  /** Unfinished events without those that run. */
  #waiting(): number {
    const { held } = this.#sql.held.get() as { held: number }
    return this.counter.unfinished - Math.min(held, this.#options.concurrency)
  }

  #isFull(count = 1): boolean {
    const most = this.#options.maxWaiting - count
    return this.counter.unfinished > most && this.#waiting() > most
  }

  accept(events: readonly NewEvent[], isWhole = false): SqliteStep<readonly Acceptance[]> {
    const accepting = this.#accepting
    const accept = (event: NewEvent) => (this.#isFull() ? accepting.refuse(event) : accepting.accept(event))
    const hasRoom = () => !isWhole || !this.#isFull(events.length)
    return { run: () => (hasRoom() ? events.map(accept) : events.map((event) => accepting.refuse(event))) }
  }

  overdue(limit: number): SqliteStep<{ overdue: readonly OverdueExpectation[]; nextInMs: number }> {
    const run = () => {
      const now = Date.now()
      // Deliveries get the other half of the room.
      const room = Math.max(0, Math.ceil(this.#options.maxWaiting / 2) - this.#waiting())
      const found = this.#accepting.overdue(Math.min(limit, room), now)
      const isCut = room < limit && found.length === room
      const next = this.#accepting.nextDeadline(isCut ? 0 : now)
      return {
        overdue: found.map(({ media, offered, ...row }) => ({
          ...row,
          media: `${media}`,
          place: undefined,
          offered: offered ?? undefined,
        })),
        nextInMs: next === null ? Number.POSITIVE_INFINITY : Math.max(next - now, room === 0 ? fullRetryMs : 0),
      }
    }
    return { run, isLight: true }
  }

  fire(overdue: readonly OverdueExpectation[]): SqliteStep<number> {
    return { run: () => overdue.filter(({ hash, changes }) => this.#accepting.fire(hash, changes)).length }
  }

  claim({ owner, lanes, marked }: ClaimRequest): SqliteStep<ClaimedLanes> {
    const run = () => {
      const now = this.#now()
      for (const { media, turn } of this.#unanswered.values()) this.#sql.release.run(now, media, owner, turn)
      const limit = Math.min(lanes, lanesPerTurn)
      const unmarked = this.#sql.unmarked.all(now, limit) as LaneRow[]
      const free = [...unmarked, ...(this.#sql.marked.all(now, marked) as LaneRow[])]
      for (const { media } of free) this.#sql.take.run(owner, media)
      const taken = free.map((row) => ({ ...row, turn: row.turn + 1 }))
      for (const lane of taken) this.#unanswered.set(`${lane.media} ${lane.turn}`, lane)
      const { next } = this.#sql.next.get(now, now) as { next: number | null }
      const nextInMs = next === null ? Number.POSITIVE_INFINITY : next - now
      const isCut = limit < lanes && unmarked.length === limit
      return { lanes: this.#reader.read(taken, now), nextInMs: isCut ? 0 : nextInMs, isHeldUp: false }
    }
    const committed = () => this.#unanswered.clear()
    // If the power fails, the lane was never claimed.
    return { run, committed, isLight: true }
  }

  settle(
    owner: string,
    lanes: readonly SettledLane[],
    events: readonly SettledEvent[],
  ): SqliteStep<readonly RecordedLane[]> {
    // The next handler of an event waits for its progress, and the next suspect for the end of the one before.
    const canWait = events.every(({ kind }) => kind !== 'progress') && lanes.every(({ clear }) => !clear)
    return { run: () => this.#settling.settle(owner, lanes, events, this.#now()), canWait }
  }

  count({ owner, media, turn, id }: HeldEvent, from: number, to: number): SqliteStep<boolean> {
    return { run: () => Number(this.#sql.count.run(to, id, from, to, Number(media), owner, turn).changes) > 0 }
  }

  join(): SqliteStep<void> {
    const run = () => {
      const now = Date.now()
      this.#sql.join.run(now)
      this.#correctClock(now)
    }
    return { run }
  }

  #correctClock(now: number): void {
    this.#sql.correctLanes.run(now, now, now)
    this.#sql.correctEvents.run(now, now, now)
    this.#sql.correctExpectations.run(now, now, now)
  }

  leave(owner: string): SqliteStep<void> {
    return { run: () => void this.#sql.leave.run(Date.now(), owner) }
  }

  /** Gives all lanes back, in the caller's transaction. */
  releaseAll(): void {
    this.#sql.releaseAll.run(Date.now())
  }

  replay(dead: readonly { readonly id: number; readonly media: Media }[]): SqliteStep<readonly number[]> {
    const replay = () => dead.flatMap(({ id, media }) => (this.#accepting.replay(id, Number(media)) ? [id] : []))
    return { run: () => (this.#isFull() ? overloaded() : replay()) }
  }

  keep(unreadable: NewUnreadable): SqliteStep<void> {
    return { run: () => this.#accepting.keep(unreadable) }
  }

  replace(unreadable: string, events: readonly NewEvent[]): SqliteStep<readonly Acceptance[] | 'gone'> {
    return { run: () => (this.#isFull(events.length) ? overloaded() : this.#accepting.replace(unreadable, events)) }
  }

  retry(hash: string): SqliteStep<boolean> {
    const run = () => {
      const now = this.#now()
      if (Number(this.#sql.makeDue.run(now, now, hash, now).changes) === 0) return false
      this.#sql.wake.run(now, hash)
      return true
    }
    return { run }
  }

  expire(): SqliteStep<Expiry> {
    let corrected: number | undefined
    const run = () => {
      const now = Date.now()
      const hasWoken = now < this.#latest
      if (hasWoken) this.#correctClock(now)
      corrected = hasWoken ? now : undefined
      return { ...this.#expiration.next(), hasWoken }
    }
    // Not before the commit: a correction that fails is made again.
    const committed = () => {
      if (corrected !== undefined) this.#latest = corrected
    }
    return { run, committed }
  }
}

const overloaded = () => new WebhookError('overloaded', 'too many events are waiting')
