import type { InboxHost } from '../inbox.ts'
import { ActivityRecorder, activityPauseMs, toActivity } from '../operations/activity.ts'
import type { ActivityMinute } from '../reading.ts'
import type { Tables } from './database.ts'
import { Regularly } from './regularly.ts'

const minuteMs = 60_000

/** Writes what the receiver of this process does, minute by minute, to the table that all processes share. */
export class PostgresActivity {
  readonly #database: Tables
  readonly #process: string
  readonly #recorder = new ActivityRecorder()
  readonly #writing: Regularly

  /** @param process a uuid */
  constructor(database: Tables, process: string, host: Pick<InboxHost, 'observe' | 'logger'>) {
    this.#database = database
    this.#process = process
    host.observe(this.#recorder)
    this.#writing = new Regularly(() => this.#write(), activityPauseMs, host.logger)
  }

  start(): void {
    this.#writing.start(activityPauseMs)
  }

  /** Returns the minutes since then, of all processes. */
  async since(since: Date): Promise<readonly ActivityMinute[]> {
    await this.#database.reach(() => this.#write())
    return readActivity(this.#database, since)
  }

  /** Writes the rest. */
  async stop(): Promise<void> {
    await this.#writing.stop()
    await this.#write()
  }

  /** Resolves with the pause until the next time, in ms. */
  async #write(): Promise<number> {
    const { schema } = this.#database
    await this.#recorder.writeChanged((minutes) =>
      this.#database.query(
        `INSERT INTO ${schema}.activity (minute, process, numbers)
         SELECT to_timestamp(minute / 1000), $1::uuid, numbers FROM unnest($2::float8[], $3::json[]) AS given (minute, numbers)
         ON CONFLICT (minute, process) DO UPDATE SET numbers = excluded.numbers`,
        [
          this.#process,
          minutes.map(([startedAt]) => startedAt.getTime()),
          minutes.map(([, numbers]) => JSON.stringify(numbers)),
        ],
      ),
    )
    return activityPauseMs
  }
}

/** Reads the minutes since then, of all processes. */
export async function readActivity(database: Tables, since: Date): Promise<readonly ActivityMinute[]> {
  const rows = await database.reach(() =>
    database.query<{ minute: string; numbers: string }>(
      `SELECT (extract(epoch FROM minute) * 1000)::bigint::text AS minute, numbers::text
       FROM ${database.schema}.activity WHERE minute > to_timestamp($1::float8 / 1000)`,
      [since.getTime() - minuteMs],
    ),
  )
  return toActivity(rows.map(({ minute, numbers }) => [new Date(Number(minute)), JSON.parse(numbers)]))
}
