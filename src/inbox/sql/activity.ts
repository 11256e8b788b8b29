import { crypto } from '../../internal/realm.ts'
import type { InboxHost } from '../inbox.ts'
import {
  type ActivityStorage,
  activityKeptMs,
  minuteOf,
  StoredActivity,
  type StoredMinute,
} from '../operations/activity.ts'
import type { Database } from './database.ts'
import { FailureLog } from './periodic-task.ts'

const upsert = `INSERT INTO $activity (minute, process, numbers) VALUES ($1, $2, $3)
  ON CONFLICT (minute, process) DO UPDATE SET numbers = excluded.numbers`
const forget = 'DELETE FROM $activity WHERE minute < $1'

export async function readMinutes(database: Pick<Database, 'read'>, first: number): Promise<readonly StoredMinute[]> {
  const sql = 'SELECT minute, numbers FROM $activity WHERE minute >= $1'
  const rows = await database.read<{ minute: number | string; numbers: string }>(sql, [first])
  return rows.map(({ minute, numbers }) => [Number(minute), numbers])
}

/** Rows per process (a uuid) and minute. */
const activityTable = (
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

/** Records the activity of this process in the database, once it is started. */
export function recordActivity(host: Pick<InboxHost, 'observe' | 'logger'>, database: Database): StoredActivity {
  const log = new FailureLog(host.logger, database)
  const { write, read } = activityTable(database, crypto.randomUUID())
  const activity = new StoredActivity({
    write: (minutes) => write(minutes).then(() => log.succeeded()),
    read,
    failed: (error) => log.failed(error),
  })
  host.observe(activity.recorder)
  return activity
}
