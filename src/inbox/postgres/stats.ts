import type { InboxStats } from '../reading.ts'
import type { Tables } from './database.ts'
import type { PostgresJob } from './job.ts'

/**
 * Counts the events in the database.
 * @param waitingHere lists the claimed events that wait in this process. Those of other processes count as running.
 */
export async function readStats(
  database: Tables,
  waitingHere: () => readonly PostgresJob[] = () => [],
): Promise<InboxStats> {
  const { schema } = database
  const [row] = await database.reach(() =>
    database.query<{ stats: string }>(
      `SELECT json_build_object(
         'waiting', count(*) FILTER (WHERE owner IS NULL AND due_at IS NULL),
         'running', count(*) FILTER (WHERE owner IS NOT NULL),
         'retrying', count(*) FILTER (WHERE due_at IS NOT NULL),
         'deadLetters', (SELECT count(*) FROM ${schema}.dead_letter),
         'oldest', extract(epoch FROM min(received_at) FILTER (WHERE owner IS NULL AND due_at IS NULL)) * 1000
       )::text AS stats FROM ${schema}.event`,
    ),
  )
  const { oldest, running, ...counts } = JSON.parse((row as { stats: string }).stats) as StoredStats
  // Listed after the count, since they were claimed before they waited. Some may have ended since.
  const waiting = waitingHere()
  const claimed = Math.min(running, waiting.length)
  const since = waiting.slice(0, claimed).map(({ accepted }) => accepted.receivedAt.getTime())
  if (oldest !== null) since.push(Math.round(oldest))
  return {
    ...counts,
    waiting: counts.waiting + claimed,
    running: running - claimed,
    ...(since.length > 0 && { oldestWaitingAt: new Date(Math.min(...since)) }),
  }
}

interface StoredStats extends Omit<InboxStats, 'oldestWaitingAt'> {
  /** When the delivery of the oldest event that waits to be claimed was received, in ms since the epoch. */
  readonly oldest: number | null
}
