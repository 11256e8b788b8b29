import type { InboxStats } from '../reading.ts'
import type { OwnClaims } from './claims.ts'
import type { Tables } from './database.ts'

/**
 * Counts the events in the database.
 * @param claims the earlier claims of this process. The claimed events of other processes count as running.
 */
export async function readStats(database: Tables, claims: OwnClaims = {}): Promise<InboxStats> {
  const { schema } = database
  const { owner, started = [] } = claims
  const isWaiting = `due_at IS NULL
    AND (owner IS NULL OR (owner IS NOT DISTINCT FROM $1::uuid AND id <> ALL ($2::bigint[])))`
  const [row] = await database.reach(() =>
    database.query<{ stats: string }>(
      `SELECT json_build_object(
         'waiting', count(*) FILTER (WHERE ${isWaiting}),
         'running', count(*) FILTER (WHERE due_at IS NULL AND NOT (${isWaiting})),
         'retrying', count(*) FILTER (WHERE due_at IS NOT NULL),
         'deadLetters', (SELECT count(*) FROM ${schema}.dead_letter),
         'oldest', extract(epoch FROM min(coalesce(since, received_at)) FILTER (WHERE ${isWaiting})) * 1000
       )::text AS stats FROM ${schema}.event`,
      [owner, started],
    ),
  )
  const { oldest, ...counts } = JSON.parse((row as { stats: string }).stats) as StoredStats
  return oldest === null ? counts : { ...counts, oldestWaitingAt: new Date(Math.round(oldest)) }
}

interface StoredStats extends Omit<InboxStats, 'oldestWaitingAt'> {
  /** The start of the longest wait among the waiting events, in ms since the epoch. */
  readonly oldest: number | null
}
