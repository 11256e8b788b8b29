import type { CheckedQuery } from '../operations/event-query.ts'
import type { Database, Value } from './database.ts'
import { isStartable, startable } from './unfinished.ts'

/** Rows one statement examines where it looks for matching ones, and time for a page of such statements (ms). */
const sliceSize = 20_000
const maxScanMs = 1_000

/** Statements for a page where `rowsPerTurn` limits them. */
const maxStatements = 200

/** SQL conditions of the states. Running and waiting events are told apart afterwards. */
const conditions = {
  waiting: isStartable,
  running: isStartable,
  retrying: 'due_at > $now',
  dead: 'died_at IS NOT NULL',
  handled: 'ended_at IS NOT NULL',
} as const

/** Adds a value to a statement, and returns its placeholder. */
export type AddValue = (value: Value) => string

/** The rows between two ids, in the order of a list. */
export interface Stretch {
  /** The last id examined before. */
  readonly after: number | undefined
  /** The last id to examine. */
  readonly upTo: number | undefined
}

/** Reads the rows of a list in order of their ids, through the index that leads past the fewest others. */
export class EventScan {
  readonly #database: Database
  readonly #query: CheckedQuery
  /** Query for the only ids to look at, ending with its conditions. `undefined`: look at all rows. */
  readonly #ids: string | undefined
  readonly #startedAt = performance.now()
  #statements = 0

  private constructor(database: Database, query: CheckedQuery, ids: string | undefined) {
    this.#database = database
    this.#query = query
    this.#ids = ids
  }

  static async of(database: Database, query: CheckedQuery): Promise<EventScan> {
    return new EventScan(database, query, await selectIds(database, query))
  }

  /** True if rows are left out: a page may then come back short. */
  get #isSparse(): boolean {
    const { state, type } = this.#query
    if (type !== undefined || state === 'waiting' || state === 'running') return true
    return state !== undefined && this.#ids === undefined
  }

  /** True once a page has taken long enough. */
  get isOver(): boolean {
    if (!this.#isSparse) return false
    return this.#isBounded ? this.#statements >= maxStatements : performance.now() - this.#startedAt > maxScanMs
  }

  /** True if statements may read few rows: then matching ones are found afterwards. */
  get #isBounded(): boolean {
    return this.#database.dialect.rowsPerTurn !== undefined
  }

  /** Returns the last id that the next statement is to examine. `undefined` if nothing limits it. */
  async end(after: number | undefined): Promise<number | undefined> {
    if (!this.#isSparse || this.#isBounded || this.#ids !== undefined) return undefined
    const values: Value[] = []
    const where = this.#within({ after, upTo: undefined }, (value) => `$${values.push(value)}`)
    const sql = `SELECT id FROM $event WHERE ${where} ${this.#order} LIMIT 1 OFFSET ${sliceSize}`
    const [row] = await this.#database.read<{ id: number | string }>(sql, values)
    return row && Number(row.id)
  }

  /** Reads the next rows, up to `size`. */
  async rows<Row>(columns: (add: AddValue) => string, stretch: Stretch, size: number): Promise<Row[]> {
    this.#statements++
    const values: Value[] = []
    const add: AddValue = (value) => `$${values.push(value)}`
    const selected = columns(add)
    const where = [
      this.#within(stretch, add),
      'media IS NOT NULL AND head IS NOT NULL',
      ...this.#filters(stretch, size, add),
    ]
    const sql = `SELECT ${selected} FROM $event event WHERE ${where.join(' AND ')} ${this.#order} LIMIT ${add(size)}`
    return this.#database.read<Row>(sql, values)
  }

  get #order(): string {
    return `ORDER BY id ${this.#query.order === 'newest' ? 'DESC' : 'ASC'}`
  }

  #within({ after, upTo }: Stretch, add: AddValue): string {
    const { mediaId, order } = this.#query
    const [beyond, to] = order === 'newest' ? ['<', '>='] : ['>', '<=']
    return [
      after === undefined ? 'id IS NOT NULL' : `id ${beyond} ${add(after)}`,
      ...(upTo === undefined ? [] : [`id ${to} ${add(upTo)}`]),
      ...(mediaId === undefined
        ? []
        : [`media = ${this.#database.dialect.lane(add(this.#database.hashMedia(mediaId)))}`]),
    ].join(' AND ')
  }

  #filters(stretch: Stretch, size: number, add: AddValue): string[] {
    const { state, type } = this.#query
    const isTyped = type !== undefined && !this.#isBounded
    const filters = isTyped ? [`CAST(head AS text) LIKE ${add(makePattern(type))} ESCAPE '!'`] : []
    if (this.#ids === undefined)
      return state === undefined || this.#isBounded ? filters : [...filters, conditions[state]]
    // As many ids as rows are enough, unless some have another type.
    const first = isTyped ? '' : `${this.#order} LIMIT ${add(size)}`
    return [...filters, `id IN (${this.#ids} AND ${this.#within(stretch, add)} ${first})`]
  }
}

/** Query for the ids of the events in a state, for states that have an index. */
async function selectIds(database: Database, { state, mediaId }: CheckedQuery): Promise<string | undefined> {
  if (state === undefined || state === 'handled' || mediaId !== undefined) return undefined
  if (state === 'dead' || state === 'retrying') return `SELECT id FROM $event WHERE ${conditions[state]}`
  const { maxCounted } = database.dialect
  const ids = `SELECT id FROM (${startable(database.dialect)}) startable WHERE id IS NOT NULL`
  if (maxCounted === undefined) return ids
  // Of so many, a look at all events finds some soon.
  const counted = await database.read(`SELECT id FROM (${ids}) found LIMIT 1 OFFSET ${maxCounted}`)
  return counted.length === 0 ? ids : undefined
}

/** Pattern for heads of a type. Upper and lower case may be the same, so matches are checked again. */
const makePattern = (type: string): string => `[${JSON.stringify(type).replaceAll(/[!%_]/g, '!$&')},%`
