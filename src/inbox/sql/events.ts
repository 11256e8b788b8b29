import { type MaybePromise, whenever } from '../../internal/maybe-promise.ts'
import { shared } from '../../internal/shared.ts'
import { nextTurn } from '../../internal/timers.ts'
import type { UnfinishedEvent } from '../inbox.ts'
import { type CheckedQuery, checkQuery, eventStates, matchesQuery, wrongCursor } from '../operations/event-query.ts'
import type { EventOutcomes, EventPage, EventQuery, EventRecord, InboxEvents } from '../reading.ts'
import { BatchReader } from './batch-reader.ts'
import type { Database, Value } from './database.ts'
import { type EventRow, type OtherProcess, type OwnWorker, type Running, recordColumns, toRecord } from './event-row.ts'
import { type AddValue, EventScan } from './event-scan.ts'
import { readStats } from './stats.ts'
import { unfinished } from './unfinished.ts'

/** A page of events with their ids. */
export interface PlacedPage {
  readonly found: readonly { readonly id: number; readonly record: EventRecord }[]
  readonly cursor?: string
}

interface OutcomeRow {
  readonly place: number | string
  readonly outcome: 'open' | 'dead' | 'handled'
}

/** The events of an inbox in order of acceptance: unfinished, dead and handled. */
export class SqlEvents implements InboxEvents {
  readonly states = eventStates
  readonly #database: Database
  readonly #own: OwnWorker | undefined
  readonly #isInspected: boolean
  /** Counts the events by state. Concurrent calls share one count. */
  readonly stats = shared(() => readStats(this.#database, this.#own))

  /**
   * @param own absent in a process that handles no events
   * @param isInspected true in a process that has no receiver, and so never listens
   */
  constructor(database: Database, own?: OwnWorker, isInspected = false) {
    this.#database = database
    this.#own = own
    this.#isInspected = isInspected
  }

  async list(query?: EventQuery): Promise<EventPage> {
    const { found, ...rest } = await this.page(checkQuery(query))
    return { events: found.map(({ record }) => record), ...rest }
  }

  /** Reads one batch per event-loop turn. */
  async page(query: CheckedQuery): Promise<PlacedPage> {
    const { limit, cursor } = query
    if (cursor !== undefined && !/^\d{1,18}$/.test(cursor)) throw wrongCursor()
    const scan = await EventScan.of(this.#database, query)
    const reader = new BatchReader(
      this.#database,
      Math.min(limit + 1, this.#database.dialect.rowsPerTurn ?? Number.MAX_SAFE_INTEGER),
    )
    const others = await this.#others()
    const found: PlacedPage['found'][number][] = []
    let end = cursor === undefined ? undefined : Number(cursor)
    for (let isFirst = true; isFirst || (end !== undefined && found.length <= limit && !scan.isOver); isFirst = false) {
      if (!isFirst) await nextTurn()
      const after: number | undefined = end
      const upTo = await scan.end(after)
      let running = this.#running(others)
      let asked = 0
      const rows: EventRow[] = await reader.run((size) => {
        running = this.#running(others)
        asked = size
        return scan.rows<EventRow>((add) => this.#columns(add), { after, upTo }, size)
      })
      for (const row of rows) {
        const record = readable(row, running)
        if (record !== undefined && matchesQuery(record, query)) found.push({ id: Number(row.id), record })
      }
      end = rows.length === asked ? Number(rows.at(-1)?.id) : upTo
    }
    const page = found.slice(0, limit)
    if (found.length > limit) end = page.at(-1)?.id
    return { found: page, ...(end !== undefined && { cursor: `${end}` }) }
  }

  #columns(add: AddValue): string {
    return recordColumns(this.#database, this.#own?.owner, add)
  }

  #running(others: Running['others']): Running {
    return { own: this.#own?.running() ?? new Map(), process: this.#database.process, others }
  }

  /** Reads what the other processes publish. */
  #others(): MaybePromise<Running['others']> {
    const { steps, dialect } = this.#database
    if (steps.shared === undefined) return new Map()
    type ProcessRow = { readonly id: string; readonly name: string | null; readonly running: string | null }
    const rows = this.#database.read<ProcessRow>(`SELECT id, name, ${dialect.json('running')} AS running FROM $process`)
    const toProcess = ({ id, name, running }: ProcessRow): [string, OtherProcess] => [
      id,
      { name, running: JSON.parse(running ?? '{}') },
    ]
    return whenever(rows, (all) => new Map(all.map(toProcess)))
  }

  get(key: string): MaybePromise<EventRecord | undefined> {
    return whenever(this.#find(key), (found) => found?.record)
  }

  #find(key: string): MaybePromise<PlacedPage['found'][number] | undefined> {
    return whenever(this.#others(), (others) => {
      const running = this.#running(others)
      const values: Value[] = []
      const add: AddValue = (value) => `$${values.push(value)}`
      const sql = `SELECT ${this.#columns(add)} FROM $event event
        WHERE hash = ${add(this.#database.hashKey(key))} AND media IS NOT NULL AND head IS NOT NULL`
      return whenever(this.#database.read<EventRow>(sql, values), ([row]) => {
        const record = row && readable(row, running)
        return row && record && record.key === key ? { id: Number(row.id), record } : undefined
      })
    })
  }

  async outcomes(keys: readonly string[]): Promise<EventOutcomes> {
    const { dialect } = this.#database
    const sql = `SELECT place, CASE WHEN ended_at IS NOT NULL THEN 'handled' WHEN died_at IS NOT NULL THEN 'dead' ELSE 'open' END AS outcome
      FROM (${dialect.hashesIn('$1')}) asked JOIN $event event ON event.hash = asked.hash
      WHERE media IS NOT NULL AND head IS NOT NULL`
    const hashes = JSON.stringify(keys.map((key) => this.#database.hashKey(key)))
    const rows = await this.#database.read<OutcomeRow>(sql, [hashes])
    const found = new Map(rows.map(({ place, outcome }) => [Number(place), outcome]))
    return keys.map((_, place) => found.get(place))
  }

  /** Makes a retry due. False if the event isn't waiting for one. */
  async retryNow(key: string): Promise<boolean> {
    const { steps } = this.#database
    if (!(await this.#database.run(steps.retry(this.#database.hashKey(key))))) return false
    this.#database.notify?.('due')
    this.#own?.wake()
    return true
  }

  stop(key: string): MaybePromise<boolean> {
    if (this.#own?.stop(key)) return true
    // Where this process can't listen, as behind a pooler, the others can't either.
    const isHeard = this.#isInspected || this.#database.isListening
    return this.#database.steps.shared !== undefined && isHeard && this.#stopElsewhere(key)
  }

  /** Asks the other process that runs the event to stop its handler. Doesn't wait for it. */
  async #stopElsewhere(key: string): Promise<boolean> {
    const found = await this.#find(key)
    if (found?.record.state !== 'running') return false
    this.#database.notify?.(`stop ${found.id}`)
    return true
  }

  /** Lists the unfinished events for the report of a closing inbox. */
  async unfinished(): Promise<readonly UnfinishedEvent[]> {
    const { dialect } = this.#database
    const running = this.#running(new Map())
    const found: UnfinishedEvent[] = []
    const reader = new BatchReader(this.#database, dialect.rowsPerTurn ?? Number.MAX_SAFE_INTEGER)
    const readAfter = (last: number) => async (size: number) => {
      const values: Value[] = []
      const value = (given: Value) => `$${values.push(given)}`
      const sql = `SELECT ${this.#columns(value)} FROM $event event WHERE id IN (${unfinished(dialect)})
        AND ended_at IS NULL AND id > ${value(last)} ORDER BY id LIMIT ${value(size)}`
      return this.#database.read<EventRow>(sql, values)
    }
    for (let last: number | undefined = 0; last !== undefined; await nextTurn()) {
      const rows: EventRow[] = await reader.run(readAfter(last))
      last = rows.length === 0 ? undefined : Number(rows.at(-1)?.id)
      for (const row of rows) {
        const { event, receivedAt, trace, state } = readable(row, running) ?? {}
        if (event !== undefined) found.push({ event, receivedAt, trace, state } as UnfinishedEvent)
      }
    }
    return found
  }
}

/** Reads a row. `undefined` if it is damaged, which the claim has logged. */
function readable(row: EventRow, running: Running): EventRecord | undefined {
  try {
    return toRecord(row, running)
  } catch {
    return undefined
  }
}
