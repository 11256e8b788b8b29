import type { InboxStats } from '../reading.ts'
import { claimedEvents } from './claim/claimed.ts'
import type { OwnClaims } from './event-row.ts'
import type { Tables } from './tables.ts'

interface StoredStats extends Omit<InboxStats, 'oldestWaitingAt' | 'expected'> {
  readonly expected: number
  /** The start of the longest wait among the waiting events, in ms since the epoch. */
  readonly oldest: number | null
}

/** Rows that a count reads at most: counting 800,000 waiting events took longer than a statement may. */
const mostCounted = 100_000

/**
 * Counts the events in the database, each state up to {@link mostCounted}.
 * @param claims the earlier claims of this process. The claimed events of other processes count as running.
 */
export async function readStats(tables: Tables, { owner, started = new Map() }: OwnClaims = {}): Promise<InboxStats> {
  // The ids of events that wait for a retry come from their own index.
  const [row] = await tables.read<{ stats: string }>(
    `WITH held AS MATERIALIZED (
       SELECT id FROM (${claimedEvents(tables.schema)}) claimed WHERE owner IS DISTINCT FROM $1::uuid OR id = ANY ($2::bigint[])
     ), idle AS MATERIALIZED (
       SELECT coalesce(since, received_at) AS since, id IN (SELECT id FROM held) AS is_running
       FROM $event WHERE due_at IS NULL ORDER BY id LIMIT ${mostCounted}
     )
     SELECT json_build_object(
       'waiting', (SELECT count(*) FROM idle WHERE NOT is_running),
       'running', (SELECT count(*) FROM idle WHERE is_running),
       'retrying', ${countOf('$event', 'WHERE due_at IS NOT NULL')},
       'deadLetters', ${countOf('$dead_letter')},
       'expected', ${countOf('$expectation')},
       'oldest', (SELECT round(extract(epoch FROM min(since)) * 1000)::bigint FROM idle WHERE NOT is_running)
     )::text AS stats`,
    [owner ?? null, Array.from(started.keys(), String)],
  )
  const { oldest, expected, ...counts } = JSON.parse((row as { stats: string }).stats) as StoredStats
  return {
    ...counts,
    ...(expected > 0 && { expected }),
    ...(oldest !== null && { oldestWaitingAt: new Date(oldest) }),
  }
}

const countOf = (table: string, where = ''): string =>
  `(SELECT count(*) FROM (SELECT FROM ${table} ${where} LIMIT ${mostCounted}) counted)`
