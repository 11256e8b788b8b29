import { type ActivityStorage, activityKeptMs, minuteOf, type StoredMinute } from '../operations/activity.ts'
import type { Database } from './database.ts'

const upsert = `INSERT INTO $activity (minute, process, numbers) VALUES ($1, $2, $3)
  ON CONFLICT (minute, process) DO UPDATE SET numbers = excluded.numbers`
const forget = 'DELETE FROM $activity WHERE minute < $1'

export async function readMinutes(database: Pick<Database, 'read'>, first: number): Promise<readonly StoredMinute[]> {
  const sql = 'SELECT minute, numbers FROM $activity WHERE minute >= $1'
  const rows = await database.read<{ minute: number | string; numbers: string }>(sql, [first])
  return rows.map(({ minute, numbers }) => [Number(minute), numbers])
}

/** Rows per process (a uuid) and minute. */
export const activityTable = (
  database: Pick<Database, 'read' | 'change'>,
  process: string,
): Pick<ActivityStorage, 'write' | 'read'> => ({
  async write(minutes) {
    await database.change([
      ...minutes.map(([minute, numbers]) => ({ sql: upsert, values: [minute, process, numbers] })),
      { sql: forget, values: [minuteOf(Date.now() - activityKeptMs)] },
    ])
  },
  read: (first) => readMinutes(database, first),
})
