import type { Media, RecordedLane, SettledEvent, SettledLane } from '../sql/database.ts'
import type { Counter } from './accepting.ts'
import { prepareAll, type SqliteDatabase } from './connection.ts'
import * as sql from './statements.ts'

/** Shortest rest that a retry ends (ms). */
const minRestMs = 1_000

/** Records ends of attempts and releases lanes, in the caller's transaction. */
export class Settling {
  readonly #counter: Counter
  readonly #isStrict: boolean
  readonly #sql

  constructor(database: SqliteDatabase, counter: Counter, isStrict: boolean) {
    this.#counter = counter
    this.#isStrict = isStrict
    this.#sql = prepareAll(database, sql.settle(isStrict))
  }

  settle(
    owner: string,
    lanes: readonly SettledLane[],
    events: readonly SettledEvent[],
    now: number,
  ): readonly RecordedLane[] {
    const held = new Map<Media, { readonly lane: SettledLane; readonly readyAt: number | null }>()
    for (const lane of lanes) {
      const row = this.#sql.held.get(Number(lane.media), owner, lane.turn, lane.first)
      if (row) held.set(lane.media, { lane, ...(row as { readonly readyAt: number | null }) })
    }
    for (const event of events) if (held.has(event.media)) this.#settleEvent(event, now)
    return [...held.values()].map(({ lane, readyAt }) => this.#settleLane(lane, readyAt, now))
  }

  #settleEvent(event: SettledEvent, now: number): void {
    // Most have recorded nothing yet.
    if (!this.#record(event, '[]', now)) {
      const row = this.#sql.completed.get(event.id) as { completed: string } | null | undefined
      if (!row || !this.#record(event, row.completed, now)) return
    }
    if (event.kind === 'end' || event.kind === 'dead') this.#counter.unfinished--
  }

  /** False if the event has been settled, or has not recorded just `stored` as completed. */
  #record(
    { id, kind, attempts, counts, delayMs, failed, ...event }: SettledEvent,
    stored: string,
    now: number,
  ): boolean {
    const completed = union(stored, event.completed)
    const late = Number(event.late)
    const attempt = [attempts, completed, failed ?? null, late]
    const unsettled = [id, attempts - Number(counts), stored]
    if (kind === 'progress') return hasChanged(this.#sql.progress.run(completed, late, ...unsettled))
    if (kind === 'end' || kind === 'dead') return hasChanged(this.#sql[kind].run(...attempt, now, ...unsettled))
    // A release tells nothing about a crash.
    const isRelease = Number(kind === 'release')
    return hasChanged(this.#sql.retry.run(...attempt, Math.ceil(now + delayMs), now, isRelease, ...unsettled))
  }

  #settleLane({ media, last, clear, release, ...settled }: SettledLane, readyAt: number | null, now: number) {
    const lane = Number(media)
    const latestAt = settled.latestAt ?? null
    const values = [last, latestAt, latestAt, Number(!clear)]
    if (release === undefined) {
      this.#sql.keep.run(...values, lane)
      return { media, readyInMs: Number.POSITIVE_INFINITY }
    }
    const { hasMore, restMs } = release
    const at =
      restMs === undefined ? this.#readyAt(lane, hasMore || readyAt !== null, now) : this.#restsUntil(lane, restMs, now)
    this.#sql.free.run(...values, at, lane)
    return { media, readyInMs: at === null ? Number.POSITIVE_INFINITY : Math.max(0, at - now) }
  }

  /** When somebody should look at a lane that nobody has. `null`: nothing is left to do. */
  #readyAt(lane: number, hasMore: boolean, now: number): number | null {
    if (hasMore && !this.#isStrict) return now
    return this.#firstDue(lane) ?? (hasMore ? now : null)
  }

  /** In loose order, a retry ends a rest, but not within a second: a lane rests too while a handler that was given up runs. */
  #restsUntil(lane: number, restMs: number, now: number): number {
    const due = this.#isStrict ? undefined : this.#firstDue(lane)
    return Math.ceil(Math.min(now + restMs, Math.max(due ?? Number.POSITIVE_INFINITY, now + minRestMs)))
  }

  #firstDue(lane: number): number | undefined {
    return (this.#sql.due.get(lane) as { due: number } | null | undefined)?.due
  }
}

const hasChanged = ({ changes }: { readonly changes: number | bigint }): boolean => Number(changes) > 0

/** A transaction may have recorded more than this process knows. */
function union(stored: string, names: readonly string[]): string {
  if (stored === '[]') return JSON.stringify(names)
  return JSON.stringify([...new Set([...(JSON.parse(stored) as string[]), ...names])])
}
