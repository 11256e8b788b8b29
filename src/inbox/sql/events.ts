import { type MaybePromise, whenever } from '../../internal/maybe-promise.ts'
import { shared } from '../../internal/shared.ts'
import { nextTurn } from '../../internal/timers.ts'
import type { UnfinishedEvent } from '../inbox.ts'
import { type CheckedQuery, checkQuery, eventStates, matchesQuery, wrongCursor } from '../operations/event-query.ts'
import type { EventOutcomes, EventPage, EventQuery, EventRecord, InboxEvents, InboxStats } from '../reading.ts'
import { BatchReader } from './batch-reader.ts'
import type { EventId } from './event.ts'
import {
  columnsOf,
  type EventReading,
  eventTables,
  everything,
  type OwnJobs,
  type Slice,
  tablesOf,
} from './event-reading.ts'
import { type EventRow, type OwnClaims, selectRows, toRecord } from './event-record.ts'
import type { SqlTables, Step, Value } from './tables.ts'

interface OwnWorker {
  readonly jobs: OwnJobs
  stop(key: string): boolean
}

type OutcomeRow = Pick<EventRow, 'source'> & { readonly place: number | string }

const outcomesIn = { event: 'open', dead_letter: 'dead', handled: 'handled' } as const

/** A page of events with their ids. */
export interface PlacedPage {
  readonly found: readonly { readonly id: EventId; readonly record: EventRecord }[]
  readonly cursor?: string
}

/** The events of an inbox in order of acceptance: unfinished, dead and handled. */
export class SqlEvents implements InboxEvents {
  readonly states = eventStates
  readonly #tables: SqlTables
  readonly #reading: EventReading
  readonly #worker: OwnWorker | undefined
  /** Counts the events by state. Concurrent calls share one count. */
  readonly stats = shared(() => this.#stats())

  /** @param worker absent in a process that handles no events */
  constructor(tables: SqlTables, reading: EventReading, worker?: OwnWorker) {
    this.#tables = tables
    this.#reading = reading
    this.#worker = worker
  }

  #own(): OwnClaims {
    const { owner, process } = this.#reading
    const jobs = this.#worker?.jobs
    return { started: jobs?.started() ?? new Map(), owner: jobs && owner?.(), process }
  }

  async list(query?: EventQuery): Promise<EventPage> {
    const { found, ...rest } = await this.page(checkQuery(query))
    return { events: found.map(({ record }) => record), ...rest }
  }

  /** Reads one batch per event-loop turn. */
  async page(query: CheckedQuery): Promise<PlacedPage> {
    const { limit, cursor, state, type } = query
    if (cursor !== undefined && !/^\d{1,18}$/.test(cursor)) throw wrongCursor()
    const { rowsPerTurn = Number.MAX_SAFE_INTEGER, longestScan, slice } = this.#reading
    const { statements: maxStatements = Number.POSITIVE_INFINITY, ms = Number.POSITIVE_INFINITY } = longestScan
    const reader = new BatchReader(Math.min(limit + 1, rowsPerTurn))
    const found: PlacedPage['found'][number][] = []
    const deadline = performance.now() + ms
    let statements = 0
    let end: EventId | undefined = cursor
    let mayStop: boolean
    do {
      if (statements > 0) await nextTurn()
      const after: EventId | undefined = end
      const part: Slice = (await slice?.(query, after)) ?? everything
      let own = this.#own()
      let asked = 0
      const rows: EventRow[] = await reader.run(async (size) => {
        own = this.#own()
        asked = size
        return this.#rows(query, part, after, size)
      })
      for (const row of rows) {
        const record = readable(row, own)
        if (record !== undefined && matchesQuery(record, query)) found.push({ id: row.id, record })
      }
      end = rows.length === asked ? rows.at(-1)?.id : part.upTo
      statements++
      const isSparse = type !== undefined || tablesOf(state)[0] === 'event' || part.upTo !== undefined
      mayStop = isSparse && (statements >= maxStatements || performance.now() > deadline)
    } while (end !== undefined && found.length <= limit && !mayStop)
    const page = found.slice(0, limit)
    if (found.length > limit) end = page.at(-1)?.id
    return { found: page, ...(end !== undefined && { cursor: `${end}` }) }
  }

  async #rows(
    { state, order }: CheckedQuery,
    slice: Slice,
    after: EventId | undefined,
    size: number,
  ): Promise<EventRow[]> {
    const values: Value[] = [...slice.values, size]
    const [direction, beyond] = order === 'newest' ? ['DESC', '<'] : ['ASC', '>']
    const end = `ORDER BY id ${direction} LIMIT $${values.length}`
    if (after !== undefined) values.push(after)
    const isAfter = after === undefined ? 'IS NOT NULL' : `${beyond} $${values.length}`
    const selects = tablesOf(state).map((table) => {
      const { id } = columnsOf[table]
      const where = `${id} ${isAfter} AND ${slice.where(id, table)}`
      return `SELECT * FROM (${selectRows(this.#tables, this.#reading, table, where)} ${end}) of_${table}`
    })
    return this.#tables.read(`${this.#claimed}${selects.join(' UNION ALL ')} ${end}`, values)
  }

  get #claimed(): string {
    const { claimed } = this.#reading
    return claimed === undefined ? '' : `WITH ${claimed} `
  }

  get(key: string): MaybePromise<EventRecord | undefined> {
    const own = this.#own()
    const id = '(SELECT id FROM $key WHERE hash = $1)'
    const selects = eventTables.map((table) =>
      selectRows(this.#tables, this.#reading, table, `${columnsOf[table].id} = ${id}`),
    )
    const sql = `${this.#claimed}${selects.join(' UNION ALL ')}`
    const rows = this.#tables.read<EventRow>(sql, [this.#tables.hashKey(key)])
    return whenever(rows, (all) => all.map((row) => toRecord(row, own)).find((record) => record.key === key))
  }

  async outcomes(keys: readonly string[]): Promise<EventOutcomes> {
    const selects = eventTables.map(
      (table) => `SELECT place, '${table}' AS source FROM (${this.#tables.hashesIn('$1')}) asked
       JOIN $key k ON k.hash = asked.hash JOIN $${table} e ON e.${columnsOf[table].id} = k.id`,
    )
    const hashes = JSON.stringify(keys.map((key) => this.#tables.hashKey(key)))
    const rows = await this.#tables.read<OutcomeRow>(selects.join(' UNION ALL '), [hashes])
    const found = new Map(rows.map(({ place, source }) => [Number(place), outcomesIn[source]]))
    return keys.map((_, place) => found.get(place))
  }

  /** Makes a retry due. False if the event isn't waiting for one. */
  async retryNow(key: string): Promise<boolean> {
    const [changed = 0] = await this.#tables.change([retryStep(this.#tables, this.#reading, key)], 'due')
    return changed > 0
  }

  stop(key: string): MaybePromise<boolean> {
    return this.#worker?.stop(key) === true || (this.#reading.stop?.(key) ?? false)
  }

  /** Lists the unfinished events for the report of a closing inbox. */
  async unfinished(): Promise<readonly UnfinishedEvent[]> {
    const select = selectRows(this.#tables, this.#reading, 'event', 'true')
    const rows = await this.#tables.read<EventRow>(`${this.#claimed}${select} ORDER BY id`)
    const own = this.#own()
    return rows.flatMap((row) => {
      const { event, receivedAt, trace, state } = readable(row, own) ?? {}
      return event === undefined ? [] : [{ event, receivedAt, trace, state } as UnfinishedEvent]
    })
  }

  #stats(): MaybePromise<InboxStats> {
    const { counts } = this.#reading
    if (counts === undefined) return whenever(this.#count(true), ([row]) => toStats(row as StatsRow))
    return whenever(counts(this.#worker?.jobs), (own) =>
      whenever(this.#count(false), ([row]) => ({ ...toStats(row as StatsRow), ...own })),
    )
  }

  /** In one statement: each event counts once. */
  #count(withUnfinished: boolean): MaybePromise<StatsRow[]> {
    const { isRetrying, maxCounted = Number.MAX_SAFE_INTEGER } = this.#reading
    const countOf = (table: string, where = '') =>
      `(SELECT count(*) FROM (SELECT 1 FROM ${table} ${where} LIMIT ${maxCounted}) counted)`
    const others = `${countOf('$dead_letter')} AS dead, ${countOf('$expectation')} AS expected`
    if (!withUnfinished) return this.#tables.read(`SELECT ${others}`)
    const { started, owner } = this.#own()
    const own = started.size === 0 ? 'false' : `id IN (${[...started.keys()]})`
    const elsewhere = 'id IN (SELECT id FROM claimed WHERE owner IS DISTINCT FROM $1)'
    const isRunning = this.#claimed === '' ? own : `(${own} OR ${elsewhere})`
    const since = this.#tables.ms('coalesce(due_at, since, received_at)')
    return this.#tables.read(
      `${this.#claimed}
       SELECT count(*) AS idle, count(CASE WHEN is_running THEN 1 END) AS running,
         min(CASE WHEN is_running THEN NULL ELSE since END) AS oldest,
         ${countOf('$event', `WHERE ${isRetrying}`)} AS retrying, ${others}
       FROM (
         SELECT ${since} AS since, ${isRunning} AS is_running FROM $event
         WHERE (${isRetrying}) IS NOT TRUE ORDER BY id LIMIT ${maxCounted}
       ) idle`,
      this.#claimed === '' ? [] : [owner ?? null],
    )
  }
}

interface StatsRow {
  readonly dead: number | string
  readonly expected: number | string
  readonly idle?: number | string
  readonly running?: number | string
  readonly retrying?: number | string
  /** Start of the longest wait (ms since the epoch). */
  readonly oldest?: number | string | null
}

function toStats({ dead, expected, idle = 0, running = 0, retrying = 0, oldest = null }: StatsRow): InboxStats {
  return {
    waiting: Number(idle) - Number(running),
    running: Number(running),
    retrying: Number(retrying),
    deadLetters: Number(dead),
    ...(Number(expected) > 0 && { expected: Number(expected) }),
    ...(oldest !== null && { oldestWaitingAt: new Date(Number(oldest)) }),
  }
}

export const retryStep = (
  { hashKey }: Pick<SqlTables, 'hashKey'>,
  { isRetrying, makeDue }: EventReading,
  key: string,
): Step => ({
  sql: `UPDATE $event SET ${makeDue} WHERE id = (SELECT id FROM $key WHERE hash = $1) AND ${isRetrying}`,
  values: [hashKey(key)],
})

/** Reads a row. `undefined` if it is damaged, which the claim has logged. */
function readable(row: EventRow, own: OwnClaims): EventRecord | undefined {
  try {
    return toRecord(row, own)
  } catch {
    return undefined
  }
}
