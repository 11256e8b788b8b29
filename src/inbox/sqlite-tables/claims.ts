import type { Logger } from '../../internal/logger.ts'
import { OutageLog } from '../../internal/outage-log.ts'
import { nextTurn, sleep } from '../../internal/timers.ts'
import type { ClaimedEvent } from '../sql/event.ts'
import type { ClaimRequest, ClaimResult } from '../sql/store.ts'
import type { OwnerRow } from './owner-row.ts'
import { type SqliteEventRow, toClaimed, UnreadableEvent } from './rows.ts'
import { prepareClaims } from './statements.ts'
import type { Commits, SqliteTables } from './storage.ts'

// Only one process claims here, so a claim writes nothing: it reads on after the last event it read. Two exceptions:
//
//   Due retries. Claiming one clears its due time, so after a crash the next process finds it among the waiting events.
//
//   Recovery. After a crash, `owner.running` lists the events this process holds, written before they start, so the next process
//   knows which ones to suspect (sql/store.ts). Without a crash there is no list: it would cost a write per event. An event's first
//   crash is therefore counted along with its second. Recovery ends once none of the events left by the crash is waiting or held.
//
// A crash before anything started, as in a process that can't boot, must not count against any event. So a recovering
// process waits `holdMs` first.

/** Events a claim reads per event-loop turn: about a millisecond of work. */
export const eventsPerTurn = 50

/** Ids read per turn, without their rows. */
const idsPerTurn = 2_000

export interface SqliteClaimsOptions {
  readonly tables: SqliteTables
  readonly commits: Commits
  readonly owner: Pick<OwnerRow, 'isRecovering' | 'holdMs' | 'recordRunning' | 'recovered'>
  readonly logger: Logger
  readonly maxBytes: number
}

export class SqliteClaims {
  readonly #options: SqliteClaimsOptions
  readonly #sql: ReturnType<typeof prepareClaims>
  readonly #canStart: Promise<void>
  readonly #unreadable = new Set<number>()
  /** Last id read, and highest id ever claimed or handed over. */
  #position = 0
  #highest = 0
  /** True once a claim has read up to the newest event, so the next stored one can be handed over. */
  #isAtEnd = false
  /** During recovery: id of the last event left by the crash. */
  #inheritedUpTo: number | undefined
  #running = new Set<number>()
  readonly #outage = new OutageLog()

  constructor(options: SqliteClaimsOptions) {
    const { tables, owner } = options
    this.#options = options
    this.#sql = prepareClaims(tables.database)
    this.#canStart = owner.isRecovering ? sleep(owner.holdMs) : Promise.resolve()
    if (owner.isRecovering) this.#inheritedUpTo = (this.#sql.lastWaiting.get() as { last: number | null }).last ?? 0
  }

  get unreadable(): number {
    return this.#unreadable.size
  }

  /** Start of the longest wait among events no claim has read (ms since the epoch). */
  oldestLeft(): number | undefined {
    const due = this.#nextDueAt()
    const [row] = this.#isAtEnd ? [] : (this.#sql.waiting.all(this.#position, 1) as SqliteEventRow[])
    const since = row && (row.since ?? row.received_at)
    return due > Date.now() ? since : Math.min(due, since ?? due)
  }

  /** Reads from the first event again: events behind the position may not be held. */
  startOver(): void {
    this.#position = 0
    this.#isAtEnd = false
  }

  /** Call for a stored event that is not handed over. */
  stored(id: number): void {
    this.#isAtEnd = false
    // Already read by a claim, or ids restarted after all keys were forgotten.
    if (id <= this.#position) this.startOver()
  }

  /** Advances past an event just stored. False: it must be claimed, maybe after others. */
  handOver(id: number): boolean {
    if (!this.#isAtEnd || id <= this.#position) return false
    this.#position = id
    this.#highest = id
    return true
  }

  /** Call in the transaction that records the end of an attempt whose event waits again. */
  ended(id: number): void {
    if (this.#inheritedUpTo === undefined) return
    this.#running.delete(id)
    // Every time: an earlier transaction may have rolled back.
    this.#record()
  }

  #record(): void {
    this.#options.owner.recordRunning([...this.#running])
  }

  /** True if an event's end completed the recovery. Claims then read on. */
  endsRecovery(): boolean {
    try {
      return this.#inheritedUpTo !== undefined && this.#hasRecovered(this.#inheritedUpTo)
    } catch {
      return false
    }
  }

  async claim(ask: () => ClaimRequest): Promise<ClaimResult> {
    await this.#canStart
    if (this.#inheritedUpTo !== undefined && !this.#hasRecovered(this.#inheritedUpTo)) return this.#recover(ask)
    const due = await this.#claimDue(ask())
    const events = [...due, ...this.#read(withHeld(ask(), due))]
    const hasMore = !this.#isAtEnd
    // A re-read found nothing missing. The next rows can wait a turn.
    if (hasMore && events.length === 0) await nextTurn()
    return { events, hasMore, nextInMs: this.#nextDueInMs() }
  }

  #nextDueAt(): number {
    return (this.#sql.nextDue.get() as { next: number | null }).next ?? Number.POSITIVE_INFINITY
  }

  #nextDueInMs(): number {
    return Math.max(0, this.#nextDueAt() - Date.now())
  }

  async #claimDue(request: ClaimRequest): Promise<ClaimedEvent[]> {
    const max = Math.min(request.limit, eventsPerTurn)
    const read = () => this.#rowsOf(idsOf(this.#sql.due.all(Date.now(), max)), request)
    if (read().length === 0) return []
    const rows = await this.#options.commits.add(() => {
      const due = read()
      for (const { id } of due) this.#sql.clearDue.run(id)
      return due
    })
    return this.#toClaimed(rows.map((row) => ({ ...row, since: row.due_at, due_at: null })))
  }

  /** Reads events in order while memory lasts. */
  #rowsOf(ids: readonly number[], { heldBytes }: ClaimRequest): SqliteEventRow[] {
    const rows: SqliteEventRow[] = []
    for (let bytes = heldBytes; rows.length < ids.length && bytes < this.#options.maxBytes; ) {
      const row = this.#sql.get.get(ids[rows.length]) as SqliteEventRow
      rows.push(row)
      bytes += row.event.length
    }
    return rows
  }

  #read(request: ClaimRequest): ClaimedEvent[] {
    if (this.#position < this.#highest) return this.#readAgain(request)
    const max = Math.min(request.limit, eventsPerTurn)
    const ids = idsOf(this.#sql.waitingIds.all(this.#position, max))
    const rows = this.#rowsOf(ids, request)
    this.#position = rows.at(-1)?.id ?? this.#position
    this.#isAtEnd = ids.length < max && rows.length === ids.length
    return this.#toClaimed(rows)
  }

  #readAgain(request: ClaimRequest): ClaimedEvent[] {
    const holds = new Set(request.held.map(({ id }) => id))
    const max = Math.min(request.limit, eventsPerTurn)
    const ids = idsOf(this.#sql.waitingIds.all(this.#position, idsPerTurn))
    const missing = ids.filter((id) => !holds.has(id)).slice(0, max)
    const rows = this.#rowsOf(missing, request)
    const isCut = rows.length === max || rows.length < missing.length
    this.#position = isCut ? (rows.at(-1)?.id ?? this.#position) : (ids.at(-1) ?? this.#highest)
    this.#isAtEnd = !isCut && ids.length < idsPerTurn
    return this.#toClaimed(rows)
  }

  #toClaimed(rows: readonly SqliteEventRow[]): ClaimedEvent[] {
    return rows.flatMap((row) => {
      this.#highest = Math.max(this.#highest, row.id)
      try {
        const event = toClaimed(row)
        this.#unreadable.delete(row.id)
        return [event]
      } catch (error) {
        if (!(error instanceof UnreadableEvent)) throw error
        if (!this.#unreadable.has(row.id))
          this.#options.logger.error(
            { row: row.id, err: error },
            'an event of the inbox cannot be read, and stays in its storage',
          )
        this.#unreadable.add(row.id)
        return []
      }
    })
  }

  #hasRecovered(inheritedUpTo: number): boolean {
    const remaining = this.#sql.inherited.all(inheritedUpTo, this.#unreadable.size + 1) as { id: number }[]
    if (remaining.some(({ id }) => !this.#unreadable.has(id))) return false
    this.#inheritedUpTo = undefined
    this.startOver()
    const { commits, owner } = this.#options
    // If this isn't recorded, the next process recovers too, which does no harm.
    commits.add(() => owner.recovered()).catch(() => {})
    return true
  }

  /** Claims during recovery, from the first event each time. Slow but simple: recovery is rare. */
  async #recover(ask: () => ClaimRequest): Promise<ClaimResult> {
    const { commits } = this.#options
    const due = await this.#claimDue(ask())
    const request = withHeld(ask(), due)
    const found = this.#findRecovering(request)
    const rows = this.#rowsOf(found, request)
    const events = [...due, ...this.#toClaimed(rows)]
    this.#running = new Set([...request.held, ...events].map(({ id }) => Number(id)))
    if (events.length > 0)
      await commits
        .add(() => this.#record())
        .then(
          () => this.#outage.worked(),
          (error) => this.#couldNotRecord(error),
        )
    const hasMore = found.length >= Math.min(request.limit, eventsPerTurn) || rows.length < found.length
    return { events, hasMore, nextInMs: this.#nextDueInMs() }
  }

  #couldNotRecord(err: unknown): void {
    this.#outage.failed(() => this.#options.logger.error({ err }, 'the inbox could not record which events start'))
  }

  /** Ids of healthy events that aren't behind an unclaimed suspect, and at most one suspect. */
  #findRecovering({ limit, withSuspect, held }: ClaimRequest): number[] {
    const max = Math.min(limit, eventsPerTurn)
    const holds = new Set(held.map(({ id }) => id))
    /** First skipped event per media item. Later ones must not overtake it. */
    const blockedAt = new Map<number, number>()
    const found: number[] = []
    for (const { id, media, crashes } of this.#rowsWithMedia()) {
      if (holds.has(id) || this.#unreadable.has(id)) continue
      if (blockedAt.has(media)) continue
      if (crashes === 0) found.push(id)
      else blockedAt.set(media, id)
      if (found.length === max) break
    }
    if (!withSuspect) return found
    const suspects = this.#sql.suspects.all() as { id: number; media: number }[]
    const next = suspects.find(({ id, media }) => blockedAt.get(media) === id)
    return next === undefined ? found : [...found, next.id]
  }

  *#rowsWithMedia(): Iterable<{ readonly id: number; readonly media: number; readonly crashes: number }> {
    for (let after = 0, length = idsPerTurn; length === idsPerTurn; ) {
      const rows = this.#sql.withMedia.all(after, idsPerTurn) as { id: number; media: number; crashes: number }[]
      yield* rows
      after = rows.at(-1)?.id ?? after
      length = rows.length
    }
  }
}

const withHeld = (request: ClaimRequest, due: readonly ClaimedEvent[]): ClaimRequest =>
  due.length === 0 ? request : { ...request, held: [...request.held, ...due] }

const idsOf = (rows: readonly unknown[]): number[] => (rows as readonly { id: number }[]).map(({ id }) => id)
