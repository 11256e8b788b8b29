import { type CheckedQuery, matchesQuery } from '../operations/event-query.ts'
import type { EventQuery, EventRecord } from '../reading.ts'
import type { OwnClaims } from './claims.ts'
import { columnsOf, type EventRow, selectOf, type TableName, tableNames, toRecord } from './event-row.ts'
import { hashMedia } from './keys.ts'

/** The number of rows of a table that one statement examines, if no index leads to the matching rows. */
const sliceSize = 20_000

/** The text of a statement, and its values. */
export interface Statement {
  readonly text: string
  readonly values: unknown[]
}

/** An event that a search has found, and its id. */
export interface FoundEvent {
  readonly place: string
  readonly record: EventRecord
}

/** The statements of a query for events, and its conditions. */
export class EventSearch {
  /** `true` if no index leads to the matching rows. In that case all rows are examined in slices. */
  readonly isSliced: boolean
  readonly #query: CheckedQuery
  readonly #schema: string
  readonly #tables: readonly TableName[]

  constructor(query: CheckedQuery, schema: string) {
    const { state, type } = query
    this.#query = query
    this.#schema = schema
    this.#tables = tablesOf(state)
    this.isSliced = type !== undefined || (state !== undefined && this.#tables[0] === 'event')
  }

  /** Finds the last row of the next slice. It finds none if the slice has all the remaining rows. */
  bound(after: string | undefined): Statement {
    const { given, values } = parameters()
    const ends = this.#tables.map((table) => {
      const { id } = columnsOf[table]
      return `(SELECT ${id} FROM ${this.#schema}.${table} WHERE ${this.#range(table, given, after)}
        ORDER BY ${id} ${this.#direction} OFFSET ${sliceSize} LIMIT 1)`
    })
    const nearest = this.#query.order === 'newest' ? 'greatest' : 'least'
    return { text: `SELECT ${nearest}(${ends})::text AS bound`, values }
  }

  /** Reads the rows up to a bound. Their number is one more than that of the page. */
  rows(after: string | undefined, bound: string | undefined): Statement {
    const { given, values } = parameters()
    const limit = `ORDER BY id ${this.#direction} LIMIT ${this.#query.limit + 1}`
    const selects = this.#tables.map((table) => {
      const where = [this.#range(table, given, after, bound), ...this.#filters(table, given)]
      return `(${selectOf(table, this.#schema, where.join(' AND '))} ${limit.replace('id', columnsOf[table].id)})`
    })
    return { text: `SELECT source, place, record FROM (${selects.join(' UNION ALL ')}) found ${limit}`, values }
  }

  get #direction(): string {
    return this.#query.order === 'newest' ? 'DESC' : 'ASC'
  }

  /** The condition that an index answers. */
  #range(table: TableName, given: Given, after: string | undefined, bound?: string): string {
    const { id } = columnsOf[table]
    const { mediaId, order } = this.#query
    const [beyond, upTo] = order === 'newest' ? ['<', '>='] : ['>', '<=']
    const where = [`${id} IS NOT NULL`]
    if (mediaId !== undefined) where.push(`media = ${given(hashMedia(mediaId), 'bigint')}`)
    if (after !== undefined) where.push(`${id} ${beyond} ${given(after, 'bigint')}`)
    if (bound !== undefined) where.push(`${id} ${upTo} ${given(bound, 'bigint')}`)
    return where.join(' AND ')
  }

  #filters(table: TableName, given: Given): readonly string[] {
    const { state, type } = this.#query
    const filters: string[] = []
    // Postgres cannot read the type, because the JSON may have characters that Postgres cannot store as text. A payload
    // can have such a field.
    if (type !== undefined)
      filters.push(`strpos(${columnsOf[table].json}::text, ${given(`"type":${JSON.stringify(type)}`, 'text')}) > 0`)
    if (state === 'retrying') filters.push('due_at IS NOT NULL')
    // Only this process knows whether a claimed event has started.
    if (state === 'waiting') filters.push('due_at IS NULL')
    if (state === 'running') filters.push('owner IS NOT NULL')
    return filters
  }

  /** @param claims the claims of this process before the rows were read */
  matchesOf(rows: readonly EventRow[], claims: OwnClaims): readonly FoundEvent[] {
    return rows
      .map((row) => ({ place: row.place, record: toRecord(row, claims) }))
      .filter(({ record }) => matchesQuery(record, this.#query))
  }
}

function tablesOf(state: EventQuery['state']): readonly TableName[] {
  if (state === undefined) return tableNames
  if (state === 'dead') return ['dead_letter']
  return state === 'handled' ? ['handled'] : ['event']
}

/** Adds a value to the statement, and returns its placeholder. */
type Given = (value: unknown, type: string) => string

function parameters(): { readonly given: Given; readonly values: unknown[] } {
  const values: unknown[] = []
  return { given: (value, type) => `$${values.push(value)}::${type}`, values }
}
