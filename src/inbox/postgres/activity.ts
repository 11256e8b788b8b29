import type { Logger } from '../../internal/logger.ts'
import type { ActivityStorage, StoredMinute } from '../operations/activity.ts'
import type { Tables } from './database.ts'
import { FailureLog } from './regularly.ts'

/**
 * The table of the activity. All processes share it.
 * @param process a uuid
 */
export function activityTable(database: Tables, process: string, logger: Logger): ActivityStorage {
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
export async function readMinutes(database: Tables, first: number): Promise<readonly StoredMinute[]> {
  const rows = await database.query<{ minute: string; numbers: string }>(
    `SELECT floor(extract(epoch FROM minute) / 60)::bigint::text AS minute, numbers::text
     FROM ${database.schema}.activity WHERE minute >= to_timestamp($1::float8 * 60)`,
    [first],
  )
  return rows.map(({ minute, numbers }) => [Number(minute), numbers])
}
