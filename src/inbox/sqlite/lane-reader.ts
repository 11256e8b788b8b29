import type { ClaimedLane, StoredEvent } from '../sql/database.ts'
import { prepareAll, type SqliteDatabase } from './connection.ts'
import * as sql from './statements.ts'

/** Events of a lane that a claim reads. */
const maxEvents = 64

/** Characters of JSON that a claim reads over all lanes: about a millisecond, which deliveries may have to wait. */
const maxText = 200_000

/** Rows that one statement reads. */
const rowsPerRead = 8

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
    const rows: EventRow[] = []
    let text = 0
    const delayedAfter = (last?: EventRow) =>
      this.#sql.delayed.all(
        ...[media, ...(this.#isStrict ? [last?.id ?? 0] : [last?.dueAt ?? -1, last?.id ?? 0, now]), rowsPerRead],
      )
    const untriedAfter = (last?: EventRow) => this.#sql.untried.all(media, last?.id ?? position, rowsPerRead)
    for (const readAfter of [delayedAfter, untriedAfter]) {
      let found: EventRow[] = []
      do {
        found = readAfter(found.at(-1)) as EventRow[]
        for (const row of found) {
          if (rows.length === maxEvents || (rows.length > 0 && text + row.event.length > maxOfLane))
            return { rows, hasMore: true }
          rows.push(row)
          text += row.event.length
        }
      } while (found.length === rowsPerRead)
    }
    return { rows, hasMore: false }
  }
}
