import type { ClaimedLane, StoredEvent } from '../sql/database.ts'
import { prepareAll, type SqliteDatabase } from './connection.ts'
import * as sql from './statements.ts'

/** Events of a lane that a claim reads. */
const maxEvents = 64

/** Characters of JSON that a claim reads over all lanes: about a millisecond, which deliveries may have to wait. */
const maxText = 200_000

/** A lane that was claimed. */
export interface LaneRow {
  readonly media: number
  readonly turn: number
  readonly position: number
  readonly crashes: number
  readonly latestAt: number | null
}

interface EventRow extends Omit<StoredEvent, 'late' | 'isRetry' | 'dueInMs'> {
  readonly late: number
  readonly dueAt: number | null
}

/** Reads the events of claimed lanes. */
export class LaneReader {
  readonly #isStrict: boolean
  readonly #sql

  constructor(database: SqliteDatabase, isStrict: boolean) {
    this.#isStrict = isStrict
    this.#sql = prepareAll(database, sql.read(isStrict))
  }

  read(lanes: readonly LaneRow[], now: number): readonly ClaimedLane[] {
    return lanes.map(({ media, latestAt, ...lane }) => {
      const { rows, hasMore } = this.#readLane(media, lane.position, maxText / lanes.length, now)
      const events = rows
        .sort((a, b) => a.id - b.id)
        .map(({ late, dueAt, ...row }) => ({
          ...row,
          late: late === 1,
          isRetry: dueAt !== null,
          dueInMs: Math.max(0, (dueAt ?? 0) - now),
        }))
      return { ...lane, media: `${media}`, latestAt: latestAt ?? undefined, events, hasMore, awaits: false }
    })
  }

  /** Reads delayed events, then untried ones, at least one. */
  #readLane(media: number, position: number, maxOfLane: number, now: number): { rows: EventRow[]; hasMore: boolean } {
    const delayedAfter = (last?: EventRow) =>
      this.#isStrict ? [media, last?.id ?? 0] : [media, last?.dueAt ?? -1, last?.id ?? 0, now]
    const untriedAfter = (last?: EventRow) => [media, last?.id ?? position]
    const first = this.#sql.first.all(...delayedAfter(), ...untriedAfter()) as EventRow[]
    const delayed = this.#pages(first, true, (last) => this.#sql.delayed.all(...delayedAfter(last)) as EventRow[])
    const untried = this.#pages(first, false, (last) => this.#sql.untried.all(...untriedAfter(last)) as EventRow[])
    const rows: EventRow[] = []
    let text = 0
    for (const pages of [delayed, untried])
      for (const row of pages) {
        if (rows.length === maxEvents || (rows.length > 0 && text + row.event.length > maxOfLane))
          return { rows, hasMore: true }
        rows.push(row)
        text += row.event.length
      }
    return { rows, hasMore: false }
  }

  /** Delayed or untried events, page by page, as far as somebody reads. */
  *#pages(first: readonly EventRow[], isDelayed: boolean, next: (last?: EventRow) => EventRow[]): Generator<EventRow> {
    let page = first.filter(({ dueAt }) => (dueAt !== null) === isDelayed)
    yield* page
    while (page.length === sql.rowsPerRead) {
      page = next(page.at(-1))
      yield* page
    }
  }
}
