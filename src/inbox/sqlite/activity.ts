import { randomUUID } from 'node:crypto'
import type { Logger } from '../../internal/logger.ts'
import { type Timer, unref } from '../../internal/timers.ts'
import { ActivityRecorder, activityKeptMs, activityPauseMs, toActivity } from '../operations/activity.ts'
import type { ActivityMinute } from '../reading.ts'
import type { SqliteDatabase, SqliteStatement } from '../sqlite-tables/database.ts'
import type { Commits } from '../sqlite-tables/storage.ts'

const minuteMs = 60_000

const minuteOf = (at: number): number => Math.floor(at / minuteMs)

/** Reads the activity of all processes from the file. */
export function readActivity(database: SqliteDatabase): (since: Date) => readonly ActivityMinute[] {
  const rows = database.prepare('SELECT minute, numbers FROM inbox_activity WHERE minute >= ? ORDER BY minute')
  return (since) => {
    const stored = rows.all(minuteOf(since.getTime())) as { minute: number; numbers: string }[]
    return toActivity(stored.map(({ minute, numbers }) => [new Date(minute * minuteMs), JSON.parse(numbers)]))
  }
}

/** Records the activity of this process in the file, every 5 s. Each process has rows of its own. */
export class SqliteActivity {
  readonly recorder = new ActivityRecorder()
  readonly #process = randomUUID()
  readonly #commits: Commits
  readonly #logger: Logger
  readonly #write: SqliteStatement
  readonly #forget: SqliteStatement
  readonly #read: (since: Date) => readonly ActivityMinute[]
  #timer: Timer | undefined

  constructor(database: SqliteDatabase, commits: Commits, logger: Logger) {
    this.#commits = commits
    this.#logger = logger
    this.#write = database.prepare(
      `INSERT INTO inbox_activity (minute, process, numbers) VALUES (?, ?, ?)
       ON CONFLICT (minute, process) DO UPDATE SET numbers = excluded.numbers`,
    )
    this.#forget = database.prepare('DELETE FROM inbox_activity WHERE minute < ?')
    this.#read = readActivity(database)
  }

  start(): void {
    const write = () =>
      this.write().catch((error) => this.#logger.warn({ err: error }, 'the inbox could not record its activity yet'))
    this.#timer = setInterval(write, activityPauseMs)
    unref(this.#timer)
  }

  stop(): void {
    clearInterval(this.#timer)
  }

  /** Writes what has changed. */
  write(): Promise<void> {
    return this.recorder.writeChanged((minutes) =>
      this.#commits.add(() => {
        for (const [startedAt, numbers] of minutes)
          this.#write.run(minuteOf(+startedAt), this.#process, JSON.stringify(numbers))
        this.#forget.run(minuteOf(Date.now() - activityKeptMs))
      }),
    )
  }

  async since(since: Date): Promise<readonly ActivityMinute[]> {
    await this.write()
    return this.#read(since)
  }
}
