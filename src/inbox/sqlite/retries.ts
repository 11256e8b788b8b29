import type { SqliteEvents } from '../sqlite-tables/events.ts'
import type { LoaderOptions } from '../sqlite-tables/load.ts'
import { prepareRetries } from '../sqlite-tables/statements.ts'
import type { Commits, SqliteTables } from '../sqlite-tables/storage.ts'

/** The table of the events whose retry another process has asked for. */
export class SqliteRetries {
  readonly #events: SqliteEvents
  readonly #sql: ReturnType<typeof prepareRetries>

  constructor({ database, events }: SqliteTables) {
    this.#events = events
    this.#sql = prepareRetries(database)
  }

  /** Asks the process that handles the file for the next attempt of an event. Part of a transaction. */
  ask(key: string): boolean {
    const row = this.#events.rowOf(key)
    if (row === undefined || !this.#events.makeDue(row)) return false
    this.#sql.ask.run(row)
    return true
  }

  /** Lists the rows of the events that another process has asked for. */
  asked(): readonly number[] {
    return (this.#sql.asked.all() as { id: number }[]).map(({ id }) => id)
  }

  /** Removes what was asked for. Part of a transaction. */
  forget(rows: Iterable<number>): void {
    for (const row of rows) this.#sql.forget.run(row)
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
