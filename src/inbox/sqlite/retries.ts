import type { Handling } from '../shared/handling.ts'
import type { Jobs } from '../shared/jobs.ts'
import type { Commits } from './commits.ts'
import type { SqliteDatabase, SqliteStatement } from './driver.ts'
import type { SqliteEvents } from './events.ts'
import type { SqliteJob } from './job.ts'

/** The table of the events whose retry another process has asked for. */
export class SqliteRetries {
  readonly #events: SqliteEvents
  readonly #rowOf: SqliteStatement
  readonly #ask: SqliteStatement
  readonly #asked: SqliteStatement
  readonly #forget: SqliteStatement

  constructor(database: SqliteDatabase, events: SqliteEvents) {
    this.#events = events
    this.#rowOf = database.prepare('SELECT id FROM inbox_key WHERE hash = ?')
    this.#ask = database.prepare('INSERT INTO inbox_retry (id) VALUES (?) ON CONFLICT DO NOTHING')
    this.#asked = database.prepare('SELECT id FROM inbox_retry')
    this.#forget = database.prepare('DELETE FROM inbox_retry WHERE id = ?')
  }

  /** Asks the process that handles the file for the next attempt of an event. Part of a transaction. */
  ask(key: string): boolean {
    const found = this.#rowOf.get(this.#events.hashKey(key)) as { id: number } | undefined
    if (!found || !this.#events.makeDue(found.id)) return false
    this.#ask.run(found.id)
    return true
  }

  /** Lists the rows of the events that another process has asked for. */
  asked(): readonly number[] {
    return (this.#asked.all() as { id: number }[]).map(({ id }) => id)
  }

  /** Removes what was asked for, and returns the rows that were still there. Part of a transaction. */
  forget(rows: readonly number[]): readonly number[] {
    return rows.filter((row) => Number(this.#forget.run(row).changes) > 0)
  }
}

/** Starts the attempts that another process has asked for. Rejects if it cannot record that it has. */
export async function retryAsked(
  retries: SqliteRetries,
  commits: Commits,
  jobs: Jobs<SqliteJob>,
  handling: Handling<SqliteJob>,
): Promise<void> {
  const rows = retries.asked()
  if (rows.length === 0) return
  // First, so that one request never starts two attempts.
  const wanted = new Set(await commits.add(() => retries.forget(rows)))
  for (const job of [...jobs]) if (wanted.has(job.row)) handling.retryNow(job)
}
