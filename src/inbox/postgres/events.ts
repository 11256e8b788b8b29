import { checkQuery, eventStates, wrongCursor } from '../operations/event-query.ts'
import type { EventPage, EventQuery, EventRecord, InboxEvents } from '../reading.ts'
import type { OwnClaims } from './claims.ts'
import type { Tables } from './database.ts'
import { columnsOf, type EventRow, selectOf, tableNames, toRecord } from './event-row.ts'
import { EventSearch, type FoundEvent, type Statement } from './event-search.ts'
import { hashKey } from './keys.ts'

/** The time after which a returned page may be short, in ms, although there may be more events. */
const longestScanMs = 1_000

/** The events of the inbox in order of acceptance: the unfinished ones, the dead letters and the handled ones. */
export class PostgresEvents implements InboxEvents {
  readonly states = eventStates
  readonly #database: Tables
  readonly #claims: () => OwnClaims

  /** @param claims returns the claims of this process. The claimed events of other processes count as running. */
  constructor(database: Tables, claims: () => OwnClaims = () => ({})) {
    this.#database = database
    this.#claims = claims
  }

  async list(query?: EventQuery): Promise<EventPage> {
    const checked = checkQuery(query)
    const { limit, cursor } = checked
    if (cursor !== undefined && !/^\d{1,18}$/.test(cursor)) throw wrongCursor()
    const search = new EventSearch(checked, this.#database.schema)
    const found: FoundEvent[] = []
    const deadline = performance.now() + longestScanMs
    for (let after = cursor; ; ) {
      const bound = search.isSliced ? await this.#boundOf(search, after) : undefined
      const claims = this.#claims()
      const rows = await this.#rows<EventRow>(search.rows(after, bound))
      found.push(...search.matchesOf(rows, claims))
      if (found.length > limit) break
      const end = rows.length > limit ? rows.at(-1)?.place : bound
      if (end === undefined) return { events: recordsOf(found) }
      if (performance.now() > deadline) return { events: recordsOf(found), cursor: end }
      after = end
    }
    const page = found.slice(0, limit)
    return { events: recordsOf(page), cursor: (page.at(-1) as FoundEvent).place }
  }

  async #boundOf(search: EventSearch, after: string | undefined): Promise<string | undefined> {
    const [row] = await this.#rows<{ bound: string | null }>(search.bound(after))
    return row?.bound ?? undefined
  }

  #rows<Row>({ text, values }: Statement): Promise<Row[]> {
    return this.#database.reach(() => this.#database.query<Row>(text, values))
  }

  async get(key: string): Promise<EventRecord | undefined> {
    const { schema } = this.#database
    const text = tableNames
      .map((table) =>
        selectOf(table, schema, `${columnsOf[table].id} = (SELECT id FROM ${schema}.key WHERE hash = $1)`),
      )
      .join(' UNION ALL ')
    const claims = this.#claims()
    const rows = await this.#rows<EventRow>({ text, values: [hashKey(key)] })
    return rows.map((row) => toRecord(row, claims)).find((record) => record.key === key)
  }

  async retryNow(key: string): Promise<boolean> {
    const { schema } = this.#database
    const rows = await this.#rows({
      text: `WITH due AS (
          UPDATE ${schema}.event SET due_at = now()
          WHERE id = (SELECT id FROM ${schema}.key WHERE hash = $1) AND due_at IS NOT NULL RETURNING 1
        )
        SELECT pg_notify($2, '') FROM due`,
      values: [hashKey(key), this.#database.channel],
    })
    return rows.length > 0
  }
}

const recordsOf = (found: readonly FoundEvent[]): EventRecord[] => found.map(({ record }) => record)
