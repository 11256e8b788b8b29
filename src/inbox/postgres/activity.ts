import type { InboxHost } from '../inbox.ts'
import type { ActivityMinute } from '../reading.ts'
import { ActivityRecorder, activityPauseMs, type MinuteNumbers, toActivity } from '../shared/activity.ts'
import type { Tables } from './database.ts'
import { Regularly } from './regularly.ts'

const minuteMs = 60_000

/** Writes what the receiver of this process does, minute by minute, to the table that all processes share. */
export class PostgresActivity {
  readonly #database: Tables
  readonly #process: string
  readonly #recorder = new ActivityRecorder()
  /** The minutes that have changed and are not written, by their start in ms since the epoch. */
  readonly #unwritten = new Map<number, MinuteNumbers>()
  readonly #writing: Regularly
  #written: Promise<unknown> = Promise.resolve()

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

  /** Writes the changed minutes, one time after another: an earlier number must not replace a later one. */
  #write(): Promise<number> {
    const written = this.#written.catch(() => {}).then(() => this.#writeChanged())
    this.#written = written
    return written
  }

  async #writeChanged(): Promise<number> {
    for (const [startedAt, numbers] of this.#recorder.takeChanged()) this.#unwritten.set(startedAt.getTime(), numbers)
    if (this.#unwritten.size === 0) return activityPauseMs
    const minutes = [...this.#unwritten]
    const values = [
      this.#process,
      minutes.map(([startedAt]) => startedAt),
      minutes.map(([, numbers]) => JSON.stringify(numbers)),
    ]
    this.#unwritten.clear()
    try {
      await this.#database.query(
        `INSERT INTO ${this.#database.schema}.activity (minute, process, numbers)
         SELECT to_timestamp(minute / 1000), $1::uuid, numbers FROM unnest($2::float8[], $3::json[]) AS given (minute, numbers)
         ON CONFLICT (minute, process) DO UPDATE SET numbers = excluded.numbers`,
        values,
      )
    } catch (error) {
      for (const [startedAt, numbers] of minutes) this.#unwritten.set(startedAt, numbers)
      throw error
    }
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
