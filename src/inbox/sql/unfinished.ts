import type { Database, Dialect } from './database.ts'

// SQL that finds unfinished events by their lanes and due times: nothing reads all that ended in the last day.

/** SQL condition: the event has been accepted or replayed, and not been tried since. */
const isUntried = 'ended_at IS NULL AND died_at IS NULL AND due_at IS NULL'

/** SQL condition: an attempt could start now, or runs. */
export const isStartable = 'ended_at IS NULL AND died_at IS NULL AND (due_at IS NULL OR due_at <= $now)'

/** Lanes in which untried events may wait. A query for each index. */
const activeLanes = ({ isReady }: Dialect): string =>
  ['owner IS NOT NULL', `owner IS NULL AND ${isReady} AND crashes = 0`, `owner IS NULL AND ${isReady} AND crashes > 0`]
    .map((where) => `SELECT media, position FROM $lane WHERE ${where}`)
    .join(' UNION ALL ')

// One condition: without statistics, Postgres expects a single row of three, and then reads all lanes for each event.
const untried = (dialect: Dialect): string => `
  SELECT event.id, coalesce(event.since, event.received_at) AS since
  FROM (${activeLanes(dialect)}) lane JOIN $event event ON event.media = lane.media AND event.id > lane.position
  WHERE coalesce(ended_at, died_at, due_at) IS NULL`

/** Query for the `id` of all events that wait or run, and `since` when. */
export const startable = (dialect: Dialect): string =>
  `${untried(dialect)} UNION ALL SELECT id, due_at AS since FROM $event WHERE due_at <= $now`

/** Query for the `id` of all unfinished events. */
export const unfinished = (dialect: Dialect): string =>
  `SELECT id FROM (${untried(dialect)}) untried UNION ALL SELECT id FROM $event WHERE due_at IS NOT NULL`

/** SQL expression: the event of `lane` whose turn it is. Its process runs one at a time. */
export const nextOfLane = `coalesce(
  (SELECT min(id) FROM $event due WHERE due.media = lane.media AND due_at <= $now),
  (SELECT min(id) FROM $event next WHERE next.media = lane.media AND id > lane.position AND ${isUntried}))`

/**
 * SQL condition: another process has `lane`. `undefined` if only one process uses the database.
 * @param owner id of this process. `undefined` if it handles nothing
 */
export function isElsewhere(
  { steps }: Pick<Database, 'steps'>,
  owner: string | undefined,
  value: (owner: string) => string,
): string | undefined {
  if (steps.shared === undefined) return undefined
  return owner === undefined ? 'lane.owner IS NOT NULL' : `lane.owner <> ${value(owner)}`
}
