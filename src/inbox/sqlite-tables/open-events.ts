import { WebhookError } from '../../errors.ts'
import type { Engine } from '../engine/engine.ts'
import type { Jobs } from '../engine/jobs.ts'
import { stopRun } from '../engine/stop-run.ts'
import { type CheckedQuery, checkQuery, eventStates, matchesQuery } from '../operations/event-query.ts'
import type { EventPage, EventQuery, EventRecord, InboxEvents } from '../reading.ts'
import { type PlacedPage, readCursor, SqliteEventReader, toPage } from './event-reader.ts'
import type { SqliteJob } from './job.ts'
import type { SqliteSettling } from './settle.ts'
import type { SqliteTables } from './storage.ts'

export interface OpenEventsOptions {
  readonly jobs: Jobs<SqliteJob>
  readonly engine: Engine<SqliteJob>
  readonly settling: SqliteSettling
  /** The name of this process, for operators. Absent if it has none. */
  readonly process?: string
  /** Called when the next attempt of an event has been started by hand. */
  readonly onRetry?: () => void
  /** The events that are only in the tables after the inbox has opened. */
  readonly loader: {
    /** `true` once every event is in memory. */
    readonly isOver: boolean
    loadRetry(key: string): SqliteJob | undefined
  }
}

/** The events of an open inbox. The unfinished ones are in memory, with their states. The others are in the tables. */
export class OpenEvents implements InboxEvents {
  readonly states = eventStates
  readonly #options: OpenEventsOptions
  readonly #reader: SqliteEventReader
  #isClosed = false

  constructor(tables: SqliteTables, options: OpenEventsOptions) {
    this.#options = options
    const current = (key: string) => {
      const job = options.jobs.get(key)
      return job && this.#record(job)
    }
    this.#reader = new SqliteEventReader(tables, { current, checkOpen: () => this.#checkOpen() })
  }

  async list(query?: EventQuery): Promise<EventPage> {
    return toPage(await this.page(query))
  }

  /** Lists events, each with its place in the order of acceptance. */
  async page(query?: EventQuery): Promise<PlacedPage> {
    const checked = checkQuery(query)
    const { state } = checked
    if (state === undefined || state === 'dead' || state === 'handled') return this.#reader.page(checked)
    this.#checkOpen()
    return this.#options.loader.isOver ? this.#inMemory(checked) : this.#reader.page(checked)
  }

  #inMemory(query: CheckedQuery): PlacedPage {
    const { state, order, limit, cursor } = query
    const sign = order === 'oldest' ? 1 : -1
    const after = cursor === undefined ? undefined : readCursor(cursor)
    const jobs = [...this.#options.jobs]
      .filter(({ row, shownState }) => shownState === state && (after === undefined || sign * (row - after) > 0))
      .sort((a, b) => sign * (a.row - b.row))
    const found: PlacedPage['found'][number][] = []
    for (const job of jobs) {
      const record = this.#record(job)
      if (!matchesQuery(record, query)) continue
      if (found.length === limit) return { found, cursor: `${found.at(-1)?.id}` }
      found.push({ id: job.row, record })
    }
    return { found }
  }

  #record(job: SqliteJob): EventRecord {
    const { process } = this.#options
    const record = job.record()
    return record.state === 'running' && process !== undefined ? { ...record, process } : record
  }

  get(key: string): EventRecord | undefined {
    return this.#reader.get(key)
  }

  retryNow(key: string): boolean {
    this.#checkOpen()
    const { jobs, engine, settling, onRetry, loader } = this.#options
    const job = jobs.get(key) ?? loader.loadRetry(key)
    if (job === undefined || !engine.retryNow(job)) return false
    settling.bringForward(job)
    onRetry?.()
    return true
  }

  stop(key: string): boolean {
    this.#checkOpen()
    return stopRun(this.#options.jobs.get(key))
  }

  close(): void {
    this.#isClosed = true
  }

  #checkOpen(): void {
    if (this.#isClosed) throw new WebhookError('closing', 'the inbox is closed')
  }
}
