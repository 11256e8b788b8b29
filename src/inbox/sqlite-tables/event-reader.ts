import { nextTurn } from '../../internal/timers.ts'
import { type CheckedQuery, checkQuery, matchesQuery, wrongCursor } from '../operations/event-query.ts'
import type { EventPage, EventQuery, EventRecord } from '../reading.ts'
import type { SqliteDatabase, SqliteStatement } from './database.ts'
import { EventSlices, ofKey } from './event-slices.ts'
import { type RecordRow, readRecord } from './records.ts'

/** The maximum number of slices for a page, so that a caller does not wait long. */
const slicesPerPage = 200

/** An event, and its place in the order of acceptance. */
export interface PlacedRecord {
  readonly id: number
  readonly record: EventRecord
}

/** A page of events. */
export interface PlacedPage {
  readonly found: readonly PlacedRecord[]
  readonly cursor?: string
}

export interface EventReaderOptions {
  readonly database: SqliteDatabase
  readonly hashKey: (key: string) => string
  /** Makes the form in which earlier releases stored a key, if it was different. */
  readonly earlierHash?: (key: string) => string
  /** Returns an event of this process. The tables do not have its state. */
  readonly current: (key: string) => EventRecord | undefined
  /** @throws WebhookError when the tables cannot be read any more */
  readonly checkOpen: () => void
}

/**
 * Finds events in the tables. It reads one slice in each turn of the event loop, so that deliveries do not wait for it.
 */
export class SqliteEventReader {
  readonly #options: EventReaderOptions
  readonly #slices: EventSlices
  readonly #byKey: SqliteStatement

  constructor(options: EventReaderOptions) {
    this.#options = options
    this.#slices = new EventSlices(options.database)
    this.#byKey = options.database.prepare(`${ofKey} k.hash IN (?, ?)`)
  }

  get(key: string): EventRecord | undefined {
    const { hashKey, earlierHash = hashKey, current, checkOpen } = this.#options
    checkOpen()
    const row = this.#byKey.get(hashKey(key), earlierHash(key)) as RecordRow | undefined
    return row && readRecord(row, current)
  }

  async list(query?: EventQuery): Promise<EventPage> {
    return toPage(await this.page(checkQuery(query)))
  }

  async page(query: CheckedQuery): Promise<PlacedPage> {
    const { current, checkOpen } = this.#options
    const found: PlacedRecord[] = []
    let after = query.cursor === undefined ? undefined : readCursor(query.cursor)
    for (let slice = 0; slice < slicesPerPage; slice++) {
      if (slice > 0) await nextTurn()
      checkOpen()
      const { rows, next } = this.#slices.read(query, after)
      for (const row of rows) {
        const record = readRecord(row, current)
        if (record === undefined || !matchesQuery(record, query)) continue
        found.push({ id: row.id, record })
        if (found.length < query.limit) continue
        const isLast = next === undefined && row === rows.at(-1)
        return isLast ? { found } : { found, cursor: `${row.id}` }
      }
      if (next === undefined) return { found }
      after = next
    }
    return { found, cursor: `${after}` }
  }
}

export const toPage = ({ found, ...rest }: PlacedPage): EventPage => ({
  events: found.map(({ record }) => record),
  ...rest,
})

/** @throws WebhookError `invalid_option` */
export function readCursor(cursor: string): number {
  const id = Number(cursor)
  if (/^\d+$/.test(cursor) && Number.isSafeInteger(id)) return id
  throw wrongCursor()
}
