import type { Media, RecordedLane, SettledEvent, SettledLane } from '../sql/database.ts'
import type { SqliteDatabase } from './connection.ts'
import type { Counter } from './counter.ts'
import * as sql from './statements.ts'

/** Records ends of attempts and releases lanes, in the caller's transaction. */
export class Settling {
  readonly #counter: Counter
  readonly #isStrict: boolean
  readonly #sql: ReturnType<typeof prepare>

  constructor(database: SqliteDatabase, counter: Counter, isStrict: boolean) {
    this.#counter = counter
    this.#isStrict = isStrict
    this.#sql = prepare(database, isStrict)
  }

  settle(owner: string, lanes: readonly SettledLane[], events: readonly SettledEvent[]): readonly RecordedLane[] {
    const held = new Map<Media, { readonly lane: SettledLane; readonly readyAt: number | null }>()
    for (const lane of lanes) {
      const row = this.#sql.held.get(Number(lane.media), owner, lane.turn, lane.first)
      if (row) held.set(lane.media, { lane, readyAt: (row as { ready_at: number | null }).ready_at })
    }
    const now = Date.now()
    for (const event of events) if (held.has(event.media)) this.#settleEvent(event, now)
    return [...held.values()].map(({ lane, readyAt }) => this.#settleLane(lane, readyAt, now))
  }

  #settleEvent(event: SettledEvent, now: number): void {
    const { id, kind, attempts, counts, delayMs, failed = null, awaits } = event
    const row = this.#sql.event.get(id, attempts - Number(counts)) as { completed: string } | null | undefined
    if (!row) return
    const completed = union(row.completed, event.completed)
    const late = Number(event.late)
    switch (kind) {
      case 'progress':
        this.#sql.progress.run(completed, late, id)
        break
      case 'end':
      case 'dead':
        this.#sql[kind].run(attempts, completed, failed, late, now, id)
        this.#counter.ended()
        break
      default: {
        const dueAt = Math.ceil(now + delayMs)
        const names = awaits.length > 0 ? JSON.stringify(awaits) : null
        // A release tells nothing about a crash.
        this.#sql.retry.run(attempts, completed, failed, late, dueAt, now, names, Number(kind === 'release'), id)
      }
    }
  }

  #settleLane(settled: SettledLane, readyAt: number | null, now: number): RecordedLane {
    const { media, last, latestAt, clear, awaits, release } = settled
    const lane = Number(media)
    const values = [last, latestAt ?? null, latestAt ?? null, Number(!clear)]
    let readyInMs = Number.POSITIVE_INFINITY
    if (release === undefined) {
      this.#sql.keep.run(...values, lane)
    } else {
      const { hasMore, restMs } = release
      const at = restMs === undefined ? this.#readyAt(lane, hasMore || readyAt !== null, now) : Math.ceil(now + restMs)
      this.#sql.free.run(...values, at, lane)
      if (at !== null) readyInMs = Math.max(0, at - now)
    }
    if (awaits) this.#gatherAwaits(lane)
    return { media, readyInMs }
  }

  /** When somebody should look at a lane that nobody has. `null`: nothing is left to do. */
  #readyAt(lane: number, hasMore: boolean, now: number): number | null {
    if (hasMore && !this.#isStrict) return now
    const { due } = (this.#sql.due.get(lane) ?? { due: null }) as { due: number | null }
    return due ?? (hasMore ? now : null)
  }

  #gatherAwaits(lane: number): void {
    const rows = this.#sql.awaited.all(lane) as { awaits: string }[]
    const names = new Set(rows.flatMap((row) => JSON.parse(row.awaits) as string[]))
    this.#sql.awaits.run(names.size > 0 ? JSON.stringify([...names]) : null, lane)
  }
}

/** A transaction may have recorded more than this process knows. */
function union(stored: string, names: readonly string[]): string {
  if (stored === '[]') return JSON.stringify(names)
  return JSON.stringify([...new Set([...(JSON.parse(stored) as string[]), ...names])])
}

const prepare = (database: SqliteDatabase, isStrict: boolean) => ({
  held: database.prepare(sql.settle.held),
  event: database.prepare(sql.settle.event),
  end: database.prepare(sql.settle.end),
  dead: database.prepare(sql.settle.dead),
  retry: database.prepare(sql.settle.retry),
  progress: database.prepare(sql.settle.progress),
  due: database.prepare(sql.settle.due(isStrict)),
  keep: database.prepare(sql.settle.keep),
  free: database.prepare(sql.settle.free),
  awaited: database.prepare(sql.settle.awaited),
  awaits: database.prepare(sql.settle.awaits),
})
