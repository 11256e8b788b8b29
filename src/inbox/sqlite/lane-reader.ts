import type { ClaimedLane, StoredEvent } from '../sql/database.ts'
import type { SqliteDatabase } from './connection.ts'
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
  readonly latest_at: number | null
  readonly awaits: number
}

interface EventRow {
  readonly id: number
  readonly event: string
  readonly trace: string | null
  readonly received_at: number
  readonly owed: string | null
  readonly attempts: number
  readonly completed: string
  readonly failed: string | null
  readonly crashes: number
  readonly late: number
  readonly due_at: number | null
  readonly since: number
}

/** Reads the events of claimed lanes. */
export class LaneReader {
  readonly #isStrict: boolean
  readonly #delayed
  readonly #untried

  constructor(database: SqliteDatabase, isStrict: boolean) {
    this.#isStrict = isStrict
    this.#delayed = database.prepare(sql.read.delayed(isStrict))
    this.#untried = database.prepare(sql.read.untried)
  }

  read(lanes: readonly LaneRow[]): readonly ClaimedLane[] {
    const now = Date.now()
    const maxOfLane = maxText / lanes.length
    return lanes.map(({ media, turn, position, crashes, latest_at: latestAt, awaits }) => {
      const { rows, hasMore } = this.#readLane(media, position, maxOfLane, now)
      return {
        media: `${media}`,
        turn,
        position,
        crashes,
        latestAt: latestAt ?? undefined,
        events: rows.map((row) => toEvent(row, now)),
        hasMore,
        awaits: awaits === 1,
      }
    })
  }

  /** Reads delayed events, then untried ones, at least one. */
  #readLane(
    media: number,
    position: number,
    max: number,
    now: number,
  ): { readonly rows: readonly EventRow[]; readonly hasMore: boolean } {
    const rows: EventRow[] = []
    let text = 0
    for (const after of [this.#delayedAfter(media, now), this.#untriedAfter(media, position)]) {
      for (let last: EventRow | undefined, more = true; more; ) {
        const found = after(last)
        for (const row of found) {
          if (rows.length === maxEvents || (rows.length > 0 && text + row.event.length > max))
            return { rows: rows.sort(byId), hasMore: true }
          rows.push(row)
          text += row.event.length
        }
        last = found.at(-1)
        more = found.length === rowsPerRead
      }
    }
    return { rows: rows.sort(byId), hasMore: false }
  }

  #delayedAfter(media: number, now: number): (last?: EventRow) => EventRow[] {
    return (last) => {
      const after = this.#isStrict ? [last?.id ?? 0] : [last?.due_at ?? -1, last?.id ?? 0, now]
      return this.#delayed.all(media, ...after, rowsPerRead) as EventRow[]
    }
  }

  #untriedAfter(media: number, position: number): (last?: EventRow) => EventRow[] {
    return (last) => this.#untried.all(media, last?.id ?? position, rowsPerRead) as EventRow[]
  }
}

const byId = (a: EventRow, b: EventRow): number => a.id - b.id

const toEvent = (row: EventRow, now: number): StoredEvent => ({
  id: row.id,
  event: row.event,
  trace: row.trace,
  receivedAt: row.received_at,
  owed: row.owed,
  attempts: row.attempts,
  completed: row.completed,
  failed: row.failed,
  crashes: row.crashes,
  late: row.late === 1,
  since: row.since,
  isRetry: row.due_at !== null,
  dueInMs: Math.max(0, (row.due_at ?? 0) - now),
})
