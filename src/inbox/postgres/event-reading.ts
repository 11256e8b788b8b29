import type { CheckedQuery } from '../operations/event-query.ts'
import type { EventId } from '../sql/event.ts'
import { columnsOf, type EventReading, type EventTable, type Slice, tablesOf } from '../sql/event-reading.ts'
import type { Value } from '../sql/tables.ts'
import { claimedEvents } from './claim/claimed.ts'
import { hashKey, hashMedia } from './keys.ts'
import type { Tables } from './tables.ts'

/** Rows examined per statement when no index leads to the matching ones. */
const sliceSize = 20_000

/** Claimed events, with what their processes publish. */
const claimed = (schema: string): string => `claimed AS MATERIALIZED (
  SELECT held.id, held.owner, process, running -> held.id::text AS started_at
  FROM (${claimedEvents(schema)}) held LEFT JOIN ${schema}.owner ON owner.id = held.owner
)`

/**
 * How operators read events. `listen`: processes hear notifications. `owner`: the id under which this process claims;
 * events claimed by others count as running.
 */
export const postgresReading = (
  tables: Tables,
  { listen, owner }: { readonly listen: boolean; readonly owner?: () => string },
): EventReading => ({
  longestScan: { ms: 1_000 },
  // Counting 800,000 waiting events exceeded the statement timeout.
  maxCounted: 100_000,
  isRetrying: 'due_at IS NOT NULL',
  makeDue: 'due_at = $now, delayed_at = $now, awaits = NULL',
  fields: {
    awaits: 'awaits',
    owed: 'owed',
    claimed: `(SELECT json_build_object('owner', owner, 'process', process, 'startedAt', started_at)
      FROM claimed WHERE claimed.id = event.id LIMIT 1)`,
  },
  claimed: claimed(tables.schema),
  ...(owner !== undefined && { owner }),
  slice: (query, after) => sliceOf(tables, query, after),
  stop: async (key) => listen && (await askToStop(tables, key, owner?.() ?? null)),
})

/** Without an index to the matching rows, reads a slice and returns those that may match: more would time out. */
async function sliceOf(tables: Tables, query: CheckedQuery, after: EventId | undefined): Promise<Slice> {
  const { state, type, mediaId, order } = query
  const values: Value[] = []
  const ofMedia = mediaId === undefined ? '' : ` AND media = $${values.push(hashMedia(mediaId))}`
  const names = tablesOf(state)
  if (type === undefined && (state === undefined || names[0] !== 'event'))
    return { where: () => `true${ofMedia}`, values }
  const [beyond, upTo, direction, nearest] =
    order === 'newest' ? ['<', '>=', 'DESC', 'greatest'] : ['>', '<=', 'ASC', 'least']
  const isAfter = after === undefined ? 'IS NOT NULL' : `${beyond} $${values.length + 1}`
  const ends = names.map((table) => {
    const { id } = columnsOf[table]
    return `(SELECT ${id} FROM $${table} WHERE ${id} ${isAfter}${ofMedia} ORDER BY ${id} ${direction} OFFSET ${sliceSize} LIMIT 1)`
  })
  const [row] = await tables.read<{ end: string | null }>(
    `SELECT ${nearest}(${ends}) AS end`,
    after === undefined ? values : [...values, after],
  )
  const end = row?.end ?? undefined
  const isBefore = end === undefined ? '' : ` ${upTo} $${values.push(end)}`
  // Postgres can't parse JSON with characters it can't store as text, so the type is searched as text. A payload may
  // contain it too.
  const typeParameter = type === undefined ? undefined : `$${values.push(JSON.stringify(type))}`
  const where = (id: string, table: EventTable) => {
    const bounded = end === undefined ? 'true' : id + isBefore
    const ofType =
      typeParameter === undefined ? '' : ` AND strpos(${columnsOf[table].json}::text, ${typeParameter}) > 0`
    return `${bounded}${ofMedia}${ofType}${ofState(state)}`
  }
  return { where, values, ...(end !== undefined && { upTo: end }) }
}

function ofState(state: CheckedQuery['state']): string {
  if (state === 'retrying') return ' AND due_at IS NOT NULL'
  // Only its process knows whether a claimed event has started.
  if (state === 'waiting') return ' AND due_at IS NULL'
  return state === 'running' ? ' AND id IN (SELECT id FROM claimed)' : ''
}

/** Asks the process that holds the event, unless it is `owner`, to stop its handler. Doesn't wait for it. */
async function askToStop(tables: Tables, key: string, owner: string | null): Promise<boolean> {
  const rows = await tables.read(
    `WITH ${claimed(tables.schema)}
     SELECT pg_notify($3, 'stop ' || id) FROM claimed
     WHERE id = (SELECT id FROM $key WHERE hash = $1) AND owner IS DISTINCT FROM $2::uuid LIMIT 1`,
    [hashKey(key), owner, tables.channel],
  )
  return rows.length > 0
}
