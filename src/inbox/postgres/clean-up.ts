import { activityKeptMs } from '../shared/activity.ts'
import type { Database } from './database.ts'

/** The most keys, and the most records of handled events, that are removed in one statement. */
const sliceSize = 1_000

/** The largest id that there can be. */
const largestId = '9223372036854775807'

/** Pauses between two clean-ups, in ms: usually, and while there is more to clean up. */
const pauses = { usual: 60_000, busy: 100 }

/**
 * Removes expired keys and the records of their events, some at a time. The keys of unfinished events and of dead letters
 * stay. Also removes the activity of more than a day ago. Returns the next pause, in ms.
 */
export async function cleanUp(database: Database, ttlMs: number): Promise<number> {
  const { schema } = database
  // By its id, since a process of version 1 removes only the key.
  const firstRemembered = `SELECT id FROM ${schema}.key
    WHERE accepted_at >= now() - ${ttlMs} * interval '1 ms' ORDER BY accepted_at LIMIT 1`
  // Subqueries with a limit, no compilation, and an array: Postgres compares every key with every row of a subquery else.
  const results = await database.batch(
    `BEGIN;
     SET LOCAL jit = off;
     DELETE FROM ${schema}.key WHERE hash = ANY (ARRAY(
       SELECT hash FROM ${schema}.key
       WHERE accepted_at < now() - ${ttlMs} * interval '1 ms'
         AND (SELECT 1 FROM ${schema}.event WHERE event.id = key.id LIMIT 1) IS NULL
         AND (SELECT 1 FROM ${schema}.dead_letter WHERE event_id = key.id LIMIT 1) IS NULL
       ORDER BY accepted_at LIMIT ${sliceSize} FOR UPDATE SKIP LOCKED
     )) RETURNING 1;
     DELETE FROM ${schema}.handled WHERE id = ANY (ARRAY(
       SELECT id FROM ${schema}.handled WHERE id < coalesce((${firstRemembered}), ${largestId})
       ORDER BY id LIMIT ${sliceSize} FOR UPDATE SKIP LOCKED
     )) RETURNING 1;
     DELETE FROM ${schema}.activity WHERE minute < now() - ${activityKeptMs} * interval '1 ms';
     COMMIT`,
  )
  const isBusy = [results[2], results[3]].some((removed) => removed?.length === sliceSize)
  return isBusy ? pauses.busy : pauses.usual
}
