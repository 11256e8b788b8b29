import type { SqliteDatabase, SqliteStatement } from '../sqlite-tables/database.ts'
import type { SqliteEvents } from '../sqlite-tables/events.ts'
import type { LoaderOptions } from '../sqlite-tables/load.ts'
import type { Commits } from '../sqlite-tables/storage.ts'

/** The table of the events whose retry another process has asked for. */
export class SqliteRetries {
  readonly #events: SqliteEvents
  readonly #rowOf: SqliteStatement
  readonly #ask: SqliteStatement
  readonly #asked: SqliteStatement
  readonly #forget: SqliteStatement

  constructor(database: SqliteDatabase, events: SqliteEvents) {
    this.#events = events
    this.#rowOf = database.prepare('SELECT id FROM inbox_key WHERE hash IN (?, ?)')
    this.#ask = database.prepare('INSERT INTO inbox_retry (id) VALUES (?) ON CONFLICT DO NOTHING')
    this.#asked = database.prepare('SELECT id FROM inbox_retry')
    this.#forget = database.prepare('DELETE FROM inbox_retry WHERE id = ?')
  }

  /** Returns the row of an event, finished or not. */
  rowOf(key: string): number | undefined {
    const found = this.#rowOf.get(this.#events.hashKey(key), this.#events.earlierHash(key)) as
      | { id: number }
      | null
      | undefined
    return found?.id
  }

  /** Asks the process that handles the file for the next attempt of an event. Part of a transaction. */
  ask(key: string): boolean {
    const row = this.rowOf(key)
    if (row === undefined || !this.#events.makeDue(row)) return false
    this.#ask.run(row)
    return true
  }

  /** Lists the rows of the events that another process has asked for. */
  asked(): readonly number[] {
    return (this.#asked.all() as { id: number }[]).map(({ id }) => id)
  }

  /** Removes what was asked for. Part of a transaction. */
  forget(rows: Iterable<number>): void {
    for (const row of rows) this.#forget.run(row)
  }
}

/** The parts of the inbox that starting these retries uses. */
export interface AskedRetriesOptions
  extends Pick<LoaderOptions, 'jobs' | 'engine' | 'logger' | 'hasStopped' | 'checkAgain'> {
  readonly retries: SqliteRetries
  readonly commits: Commits
}

/** Starts the attempts that another process has asked for. */
export async function startAsked(options: AskedRetriesOptions): Promise<void> {
  const { retries, commits, jobs, engine, logger, hasStopped, checkAgain } = options
  try {
    const rows = new Set(retries.asked())
    if (rows.size === 0) return
    // First, so that one request never starts two attempts.
    await commits.add(() => retries.forget(rows))
    for (const job of [...jobs]) if (rows.has(job.row)) engine.retryNow(job)
  } catch (error) {
    if (hasStopped()) return
    logger.warn({ err: error }, 'the inbox could not start a retry that another process asked for yet')
    checkAgain()
  }
}
