import { randomUUID } from 'node:crypto'
import type { Logger } from '../../internal/logger.ts'
import { type ActivityStorage, activityKeptMs, minuteOf, type StoredMinute } from '../operations/activity.ts'
import type { SqliteDatabase } from '../sqlite-tables/database.ts'
import { prepareActivity } from '../sqlite-tables/statements.ts'
import type { Commits } from '../sqlite-tables/storage.ts'

/** Reads the activity of all processes from the file, from a minute on. */
export function minutesOf(database: SqliteDatabase): (first: number) => readonly StoredMinute[] {
  const { read } = prepareActivity(database)
  return (first) =>
    (read.all(first) as { minute: number; numbers: string }[]).map(({ minute, numbers }) => [minute, numbers])
}

/** The table of the activity, in which each process has rows of its own. */
export function activityTable(database: SqliteDatabase, commits: Commits, logger: Logger): ActivityStorage {
  const process = randomUUID()
  const { write, forget } = prepareActivity(database)
  return {
    write: (minutes) =>
      commits.add(() => {
        for (const [minute, numbers] of minutes) write.run(minute, process, numbers)
        forget.run(minuteOf(Date.now() - activityKeptMs))
      }),
    read: minutesOf(database),
    failed: (error) => logger.warn({ err: error }, 'the inbox could not record its activity yet'),
  }
}
