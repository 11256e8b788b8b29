import { type CheckedQuery, matchesQuery, wrongCursor } from '../operations/event-query.ts'
import type { EventPage, EventQuery, EventRecord } from '../reading.ts'
import { Piece } from '../sql/piece.ts'
import type { Value } from '../sql/tables.ts'
import {
  columnsOf,
  type EventRow,
  type OwnClaims,
  selectOf,
  type TableName,
  tableNames,
  toRecord,
  withClaimed,
} from './event-row.ts'
import { hashKey, hashMedia } from './keys.ts'
import type { Tables } from './tables.ts'

/** The number of rows of a table that one statement examines, if no index leads to the matching rows. */
const sliceSize = 20_000

/** The time after which a returned page may be short, in ms, although there may be more events. */
const longestScanMs = 1_000

/** The events of the inbox in order of acceptance: the unfinished ones, the dead letters and the handled ones. */
export class PostgresEvents {
  readonly #tables: Tables

  constructor(tables: Tables) {
    this.#tables = tables
  }

  /** @param ownClaims the claims of this process. The claimed events of other processes count as running. */
  async list(checked: CheckedQuery, ownClaims: () => OwnClaims): Promise<EventPage> {
    const { limit, cursor } = checked
    if (cursor !== undefined && !/^\d{1,18}$/.test(cursor)) throw wrongCursor()
    const search = new EventSearch(this.#tables, checked)
    const found: { readonly place: string; readonly record: EventRecord }[] = []
    const deadline = performance.now() + longestScanMs
    const piece = new Piece(limit + 1)
    let end = cursor
    let bound: string | undefined
    do {
      const from = end
      bound = await search.bound(from)
      let claims = ownClaims()
      let asked = 0
      const rows = await piece.run((size) => {
        claims = ownClaims()
        asked = size
        return search.rows(from, bound, size)
      })
      const records = rows.map((row) => ({ place: row.place, record: toRecord(row, claims) }))
      found.push(...records.filter(({ record }) => matchesQuery(record, checked)))
      end = rows.length === asked ? rows.at(-1)?.place : bound
    } while (end !== undefined && found.length <= limit && (bound === undefined || performance.now() <= deadline))
    const page = found.slice(0, limit)
    if (found.length > limit) end = page.at(-1)?.place
    return { events: page.map(({ record }) => record), ...(end !== undefined && { cursor: end }) }
  }

  async get(key: string, claims: OwnClaims): Promise<EventRecord | undefined> {
    const selects = tableNames.map((table) =>
      selectOf(table, `${columnsOf[table].id} = (SELECT id FROM $key WHERE hash = $1)`),
    )
    const statement = `${withClaimed(this.#tables.schema)} ${selects.join(' UNION ALL ')}`
    const rows = await this.#tables.read<EventRow>(statement, [hashKey(key)])
    return rows.map((row) => toRecord(row, claims)).find((record) => record.key === key)
  }

  async retryNow(key: string): Promise<boolean> {
    const rows = await this.#tables.read(
      `WITH due AS (
         UPDATE $event SET due_at = now(), delayed_at = now(), awaits = NULL
         WHERE id = (SELECT id FROM $key WHERE hash = $1) AND due_at IS NOT NULL RETURNING 1
       )
       SELECT pg_notify($2, 'due') FROM due`,
      [hashKey(key), this.#tables.channel],
    )
    return rows.length > 0
  }

  /** Asks the process that has the event, if it is not `owner`, to stop its handler, and does not wait for it. */
  async stop(key: string, owner: string | null): Promise<boolean> {
    const rows = await this.#tables.read(
      `${withClaimed(this.#tables.schema)}
       SELECT pg_notify($3, 'stop ' || id) FROM claimed
       WHERE id = (SELECT id FROM $key WHERE hash = $1) AND owner IS DISTINCT FROM $2::uuid LIMIT 1`,
      [hashKey(key), owner, this.#tables.channel],
    )
    return rows.length > 0
  }
}

/** Reads the rows that can match a query, in its order. */
class EventSearch {
  readonly #tables: Tables
  readonly #query: CheckedQuery
  readonly #names: readonly TableName[]
  readonly #direction: 'ASC' | 'DESC'

  constructor(tables: Tables, query: CheckedQuery) {
    this.#tables = tables
    this.#query = query
    this.#names = namesOf(query.state)
    this.#direction = query.order === 'newest' ? 'DESC' : 'ASC'
  }

  /**
   * If no index leads to the matching rows, all rows are examined in slices, and this finds the last row of the next
   * slice. Otherwise, and if the slice has all the remaining rows, it finds none.
   */
  async bound(after: string | undefined): Promise<string | undefined> {
    const { state, type, order } = this.#query
    if (type === undefined && (state === undefined || this.#names[0] !== 'event')) return undefined
    const values: Value[] = []
    const ends = this.#names.map((table) => {
      const { id } = columnsOf[table]
      return `(SELECT ${id} FROM $${table} WHERE ${this.#range(table, values, after)}
        ORDER BY ${id} ${this.#direction} OFFSET ${sliceSize} LIMIT 1)`
    })
    const nearest = order === 'newest' ? 'greatest' : 'least'
    const [row] = await this.#tables.read<{ bound: string | null }>(`SELECT ${nearest}(${ends})::text AS bound`, values)
    return row?.bound ?? undefined
  }

  /** Reads the first rows up to a bound. */
  rows(after: string | undefined, bound: string | undefined, size: number): Promise<EventRow[]> {
    const values: Value[] = []
    const limit = `ORDER BY id ${this.#direction} LIMIT ${size}`
    const selects = this.#names.map((table) => {
      const where = this.#range(table, values, after, bound) + this.#filters(table, values)
      return `(${selectOf(table, where)} ${limit})`
    })
    const statement = `${withClaimed(this.#tables.schema)}
      SELECT source, place, record FROM (${selects.join(' UNION ALL ')}) found ${limit}`
    return this.#tables.read(statement, values)
  }

  /** The condition that an index answers. */
  #range(table: TableName, values: Value[], after: string | undefined, bound?: string): string {
    const { id } = columnsOf[table]
    const { mediaId, order } = this.#query
    const [beyond, upTo] = order === 'newest' ? ['<', '>='] : ['>', '<=']
    let range = `${id} IS NOT NULL`
    if (mediaId !== undefined) range += ` AND media = $${values.push(hashMedia(mediaId))}`
    if (after !== undefined) range += ` AND ${id} ${beyond} $${values.push(after)}`
    if (bound !== undefined) range += ` AND ${id} ${upTo} $${values.push(bound)}`
    return range
  }

  #filters(table: TableName, values: Value[]): string {
    const { state, type } = this.#query
    let filters = ''
    // Postgres cannot read the type, because the JSON may have characters that Postgres cannot store as text. A payload
    // can have such a text.
    if (type !== undefined)
      filters += ` AND strpos(${columnsOf[table].json}::text, $${values.push(JSON.stringify(type))}) > 0`
    if (state === 'retrying') filters += ' AND due_at IS NOT NULL'
    // Only this process knows whether a claimed event has started.
    if (state === 'waiting') filters += ' AND due_at IS NULL'
    if (state === 'running') filters += ' AND id IN (SELECT id FROM claimed)'
    return filters
  }
}

function namesOf(state: EventQuery['state']): readonly TableName[] {
  if (state === undefined) return tableNames
  if (state === 'dead') return ['dead_letter']
  return state === 'handled' ? ['handled'] : ['event']
}
