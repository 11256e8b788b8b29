import type { InboxStats } from '../reading.ts'
import type { Tables } from './database.ts'

/** Counts the events in the database. Those that are claimed and wait in their process count as running. */
export async function readStats(database: Tables): Promise<InboxStats> {
  const { schema } = database
  const [row] = await database.reach(() =>
    database.query<{ stats: string }>(
      `SELECT json_build_object(
         'waiting', count(*) FILTER (WHERE owner IS NULL AND due_at IS NULL),
         'running', count(*) FILTER (WHERE owner IS NOT NULL),
         'retrying', count(*) FILTER (WHERE due_at IS NOT NULL),
         'deadLetters', (SELECT count(*) FROM ${schema}.dead_letter)
       )::text AS stats FROM ${schema}.event`,
    ),
  )
  return JSON.parse((row as { stats: string }).stats)
}
