import type { CheckedQuery } from '../operations/event-query.ts'
import type { SqliteDatabase, SqliteStatement } from './database.ts'
import type { RecordRow } from './records.ts'
import { blockOf, blockOfId, hashMedia, idsPerBlock } from './schema.ts'

/** The number of rows of a slice. A slice takes a few milliseconds, even with large payloads. */
const rowsPerSlice = 100

/** The number of blocks that a slice searches for the events of a media item. */
const blocksPerSlice = 250

const ofEvent = 'e.event, e.received_at, e.attempts, e.completed, e.due_at, e.starts AS crashes, e.trace, e.failed'

/** Reads all the data of an event by its key. */
export const ofKey = `SELECT k.id, h.record AS handled, ${ofEvent}, d.dead_letter FROM inbox_key k
  LEFT JOIN inbox_handled h ON h.id = k.id LEFT JOIN inbox_event e ON e.id = k.id
  LEFT JOIN inbox_dead_letter d ON d.event_id = k.id WHERE`

/** The tables that have events, each in order of acceptance. */
const places = {
  all: { select: ofKey, id: 'k.id' },
  block: { select: `${ofKey} k.${blockOfId} = ? AND k.media = ? AND`, id: 'k.id' },
  unfinished: { select: `SELECT e.id, ${ofEvent} FROM inbox_event e WHERE`, id: 'e.id' },
  dead: { select: 'SELECT d.event_id AS id, d.dead_letter FROM inbox_dead_letter d WHERE', id: 'd.event_id' },
}

/** Some of the events that a query may match, in its order. */
export interface EventSlice {
  readonly rows: readonly RecordRow[]
  /** The id after which the next slice begins. `undefined` if this was the last slice. */
  readonly next: number | undefined
}

/** Reads events slice by slice, each in a bounded time. */
export class EventSlices {
  readonly #database: SqliteDatabase
  readonly #statements = new Map<string, SqliteStatement>()
  readonly #bounds: SqliteStatement

  constructor(database: SqliteDatabase) {
    this.#database = database
    this.#bounds = database.prepare(
      'SELECT (SELECT min(id) FROM inbox_key) AS first, (SELECT max(id) FROM inbox_key) AS last',
    )
  }

  /** Reads the slice after an id, or the first one. */
  read({ state, mediaId, order }: CheckedQuery, after = order === 'oldest' ? 0 : Number.MAX_SAFE_INTEGER): EventSlice {
    if (mediaId !== undefined) return this.#ofMedia(mediaId, order, after)
    const place = state === undefined || state === 'handled' ? 'all' : state === 'dead' ? 'dead' : 'unfinished'
    const rows = this.#rows(place, order, after)
    return { rows, next: rows.length < rowsPerSlice ? undefined : rows.at(-1)?.id }
  }

  #rows(place: keyof typeof places, order: CheckedQuery['order'], ...parameters: number[]): RecordRow[] {
    const { select, id } = places[place]
    const [comparison, direction] = order === 'oldest' ? ['>', 'ASC'] : ['<', 'DESC']
    const sql = `${select} ${id} ${comparison} ? ORDER BY ${id} ${direction} LIMIT ${rowsPerSlice}`
    const statement = this.#statements.get(sql) ?? this.#database.prepare(sql)
    this.#statements.set(sql, statement)
    return statement.all(...parameters) as RecordRow[]
  }

  /** Searches one block after another. */
  #ofMedia(mediaId: string, order: CheckedQuery['order'], after: number): EventSlice {
    const { first, last } = this.#bounds.get() as { first: number | null; last: number | null }
    if (first === null || last === null) return { rows: [], next: undefined }
    const isUp = order === 'oldest'
    const media = hashMedia(mediaId)
    const rows: RecordRow[] = []
    let block = blockOf(isUp ? Math.max(after, first) : Math.min(after, last))
    const end = block + (isUp ? blocksPerSlice : -blocksPerSlice)
    for (; block !== end; block += isUp ? 1 : -1) {
      if (isUp ? block > blockOf(last) : block < blockOf(first)) return { rows, next: undefined }
      rows.push(...this.#rows('block', order, block, media, after))
      if (rows.length >= rowsPerSlice) return { rows, next: rows.at(-1)?.id }
    }
    return { rows, next: isUp ? block * idsPerBlock - 1 : (block + 1) * idsPerBlock }
  }
}
