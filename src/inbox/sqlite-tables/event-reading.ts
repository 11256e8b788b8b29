import type { CheckedQuery } from '../operations/event-query.ts'
import type { EventId } from '../sql/event.ts'
import { type EventReading, everything, type Slice } from '../sql/event-reading.ts'
import type { SyncTables } from '../sql/tables.ts'
import { blockOf, blockOfId, hashMedia, idsPerBlock } from './schema.ts'

/** Rows per slice: a few milliseconds, even with large payloads. */
const rowsPerSlice = 100

/** Blocks searched per slice for the events of a media item. */
const blocksPerSlice = 250

/** Reads one bounded slice per event-loop turn, so deliveries don't wait. */
export const sqliteReading = (tables: SyncTables): EventReading => ({
  rowsPerTurn: rowsPerSlice,
  longestScan: { statements: 200 },
  isRetrying: 'due_at > $now',
  makeDue: 'due_at = $now, delayed_at = $now',
  slice: ({ mediaId, order }, after) => (mediaId === undefined ? everything : sliceOf(tables, mediaId, order, after)),
})

/** Finds the next events of a media item, block by block. */
function sliceOf(tables: SyncTables, mediaId: string, order: CheckedQuery['order'], after: EventId | undefined): Slice {
  const isUp = order === 'oldest'
  const [bounds] = tables.read<{ first: number | null; last: number | null }>(
    'SELECT (SELECT min(id) FROM $key) AS first, (SELECT max(id) FROM $key) AS last',
  )
  const { first, last } = { first: bounds?.first ?? 0, last: bounds?.last ?? -1 }
  const from = Number(after ?? (isUp ? 0 : Number.MAX_SAFE_INTEGER))
  const sql = `SELECT id FROM $key WHERE ${blockOfId} = $1 AND media = $2 AND id ${isUp ? '> $3 ORDER BY id' : '< $3 ORDER BY id DESC'} LIMIT ${rowsPerSlice}`
  const media = hashMedia(mediaId)
  const ids: number[] = []
  const slice = (upTo?: number): Slice => ({
    where: (id) => `${id} IN (SELECT value FROM json_each($1))`,
    values: [JSON.stringify(ids)],
    upTo,
  })
  let block = blockOf(isUp ? Math.max(from, first) : Math.min(from, last))
  const end = block + (isUp ? blocksPerSlice : -blocksPerSlice)
  for (; block !== end; block += isUp ? 1 : -1) {
    if (isUp ? block > blockOf(last) : block < blockOf(first)) return slice()
    for (const { id } of tables.read<{ id: number }>(sql, [block, media, from])) ids.push(id)
    if (ids.length >= rowsPerSlice) return slice(ids.at(-1))
  }
  return slice(isUp ? block * idsPerBlock - 1 : (block + 1) * idsPerBlock)
}
