import type { Logger } from '../../internal/logger.ts'
import type { ActivityStorage, StoredMinute } from '../operations/activity.ts'
import type { InboxStats } from '../reading.ts'
import { claimedEvents } from './claimed.ts'
import type { OwnClaims } from './claims.ts'
import type { Database, Tables } from './database.ts'
import { FailureLog } from './regularly.ts'

// What an inbox tells in numbers: its events by state, and the activity of its processes.

interface StoredStats extends Omit<InboxStats, 'oldestWaitingAt' | 'expected'> {
  readonly expected: number
  /** The start of the longest wait among the waiting events, in ms since the epoch. */
  readonly oldest: number | null
}

/**
 * Counts the events in the database.
 * @param claims the earlier claims of this process. The claimed events of other processes count as running.
 */
export async function readStats(tables: Tables, { owner, started = new Map() }: OwnClaims = {}): Promise<InboxStats> {
  // Processes of versions 1 and 2 publish no claims.
  const isRunning = 'id IN (SELECT id FROM running) OR (owner IS NOT NULL AND owner IS DISTINCT FROM $1::uuid)'
  const isWaiting = `due_at IS NULL AND NOT (${isRunning})`
  const [row] = await tables.ask<{ stats: string }>(
    `WITH running AS (
       SELECT id FROM (${claimedEvents(tables.schema)}) claimed WHERE owner IS DISTINCT FROM $1::uuid OR id = ANY ($2::bigint[])
     )
     SELECT json_build_object(
       'waiting', count(*) FILTER (WHERE ${isWaiting}),
       'running', count(*) FILTER (WHERE due_at IS NULL AND (${isRunning})),
       'retrying', count(*) FILTER (WHERE due_at IS NOT NULL),
       'deadLetters', (SELECT count(*) FROM $dead_letter),
       'expected', (SELECT count(*) FROM $expectation),
       'oldest', extract(epoch FROM min(coalesce(since, received_at)) FILTER (WHERE ${isWaiting})) * 1000
     )::text AS stats FROM $event`,
    [owner, [...started.keys()]],
  )
  const { oldest, expected, ...counts } = JSON.parse((row as { stats: string }).stats) as StoredStats
  return {
    ...counts,
    ...(expected > 0 && { expected }),
    ...(oldest !== null && { oldestWaitingAt: new Date(Math.round(oldest)) }),
  }
}

/**
 * The table of the activity. All processes share it.
 * @param process a uuid
 */
export function activityTable(database: Database, process: string, logger: Logger): ActivityStorage {
  const log = new FailureLog(logger)
  return {
    async write(minutes) {
      await database.query(
        `INSERT INTO ${database.schema}.activity (minute, process, numbers)
         SELECT to_timestamp(minute * 60), $1::uuid, numbers FROM unnest($2::float8[], $3::json[]) AS given (minute, numbers)
         ON CONFLICT (minute, process) DO UPDATE SET numbers = excluded.numbers`,
        [process, minutes.map(([minute]) => minute), minutes.map(([, numbers]) => numbers)],
      )
      log.succeeded()
    },
    read: (first) => readMinutes(database, first),
    failed: (error) => log.failed(error),
  }
}

/** Reads the activity of all processes, from a minute on. */
export async function readMinutes(tables: Tables, first: number): Promise<readonly StoredMinute[]> {
  const rows = await tables.ask<{ minute: string; numbers: string }>(
    `SELECT floor(extract(epoch FROM minute) / 60)::bigint::text AS minute, numbers::text
     FROM $activity WHERE minute >= to_timestamp($1::float8 * 60)`,
    [first],
  )
  return rows.map(({ minute, numbers }) => [Number(minute), numbers])
}
