import { nextTurn } from '../../internal/timers.ts'
import { type CheckedQuery, matchesQuery, wrongCursor } from '../operations/event-query.ts'
import type { EventPage, EventRecord } from '../reading.ts'
import { type RecordRow, toRecord } from './rows.ts'
import { blockOf, hashMedia, idsPerBlock } from './schema.ts'
import { prepareReading, rowsPerSlice } from './statements.ts'
import type { SqliteTables } from './storage.ts'

/** The maximum number of slices for a page, so that a caller does not wait long. */
const slicesPerPage = 200

/** The number of blocks that a slice searches for the events of a media item. */
const blocksPerSlice = 250

/** A page of events, each with its place in the order of acceptance. */
export interface PlacedPage {
  readonly found: readonly { readonly id: number; readonly record: EventRecord }[]
  readonly cursor?: string
}

/** Some of the events that a query may match, in its order, and the id after which the next slice begins. */
interface Slice {
  readonly rows: readonly RecordRow[]
  /** `undefined` if this was the last slice. */
  readonly next: number | undefined
}

export interface EventReaderOptions {
  /** Returns an event of this process. The tables do not have its state. */
  readonly current: (key: string) => EventRecord | undefined
  /** @throws WebhookError when the tables cannot be read any more */
  readonly checkOpen: () => void
}

/**
 * Finds events in the tables. It reads one slice in each turn of the event loop, so that deliveries do not wait for it.
 * Each slice takes a bounded time.
 */
export class SqliteEventReader {
  readonly #tables: SqliteTables
  readonly #options: EventReaderOptions
  readonly #sql: ReturnType<typeof prepareReading>

  constructor(tables: SqliteTables, options: EventReaderOptions) {
    this.#tables = tables
    this.#options = options
    this.#sql = prepareReading(tables.database)
  }

  get(key: string): EventRecord | undefined {
    const { current, checkOpen } = this.#options
    checkOpen()
    const row = this.#sql.byKey.get(this.#tables.events.hashKey(key)) as RecordRow | undefined
    return row && toRecord(row, current)
  }

  async page(query: CheckedQuery): Promise<PlacedPage> {
    const { current, checkOpen } = this.#options
    const found: PlacedPage['found'][number][] = []
    let after = query.cursor === undefined ? undefined : readCursor(query.cursor)
    for (let slice = 0; slice < slicesPerPage; slice++) {
      if (slice > 0) await nextTurn()
      checkOpen()
      const { rows, next } = this.#read(query, after)
      for (const row of rows) {
        const record = readable(row, current)
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

  /** Reads the slice after an id, or the first one. */
  #read({ state, mediaId, order }: CheckedQuery, after = order === 'oldest' ? 0 : Number.MAX_SAFE_INTEGER): Slice {
    if (mediaId !== undefined) return this.#readMedia(mediaId, order, after)
    const place = state === undefined || state === 'handled' ? 'all' : state === 'dead' ? 'dead' : 'unfinished'
    const rows = this.#sql[place][order].all(after) as RecordRow[]
    return { rows, next: rows.length < rowsPerSlice ? undefined : rows.at(-1)?.id }
  }

  /** Searches one block after another. */
  #readMedia(mediaId: string, order: CheckedQuery['order'], after: number): Slice {
    const { first, last } = this.#sql.bounds.get() as { first: number | null; last: number | null }
    if (first === null || last === null) return { rows: [], next: undefined }
    const isUp = order === 'oldest'
    const media = hashMedia(mediaId)
    const rows: RecordRow[] = []
    let block = blockOf(isUp ? Math.max(after, first) : Math.min(after, last))
    const end = block + (isUp ? blocksPerSlice : -blocksPerSlice)
    for (; block !== end; block += isUp ? 1 : -1) {
      if (isUp ? block > blockOf(last) : block < blockOf(first)) return { rows, next: undefined }
      rows.push(...(this.#sql.block[order].all(block, media, after) as RecordRow[]))
      if (rows.length >= rowsPerSlice) return { rows, next: rows.at(-1)?.id }
    }
    return { rows, next: isUp ? block * idsPerBlock - 1 : (block + 1) * idsPerBlock }
  }
}

/** Reads an event. Leaves one out that cannot be read, which was logged when it was loaded: the others are of use. */
function readable(row: RecordRow, current: EventReaderOptions['current']): EventRecord | undefined {
  try {
    return toRecord(row, current)
  } catch {
    return undefined
  }
}

export const toPage = ({ found, ...rest }: PlacedPage): EventPage => ({
  events: found.map(({ record }) => record),
  ...rest,
})

/** @throws WebhookError `invalid_option` */
function readCursor(cursor: string): number {
  const id = Number(cursor)
  if (/^\d+$/.test(cursor) && Number.isSafeInteger(id)) return id
  throw wrongCursor()
}
