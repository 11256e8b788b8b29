import type { Database } from './database.ts'

/** The most keys that are removed in one statement. */
const sliceSize = 1_000

/** Pauses between two clean-ups, in ms: usually, and while there is more to clean up. */
const pauses = { usual: 60_000, busy: 100 }

/** Removes expired keys, some at a time. Those of unfinished events and of dead letters stay. Returns the next pause, in ms. */
export async function cleanUp(database: Database, ttlMs: number): Promise<number> {
  const { schema } = database
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
     COMMIT`,
  )
  const removed = results[2]?.length ?? 0
  return removed < sliceSize ? pauses.usual : pauses.busy
}
