import type { Database } from './database.ts'
import { literal, tookMs, turnOff } from './schema.ts'

/** Maximum expectations fired per commit. */
const maxCommit = 500

/** Delay in multiples of the search time, and its maximum (ms). A search reads dead rows under an open snapshot. */
const delayFactor = 10
const maxDelayMs = 30_000

/** Statement timeout of a search (ms). */
const searchTimeoutMs = 30_000

interface Fired {
  readonly count: string
  readonly last: string | null
  readonly took: string
}

/** Fires overdue expectations, whichever process comes first. */
export class OverdueExpectations {
  readonly #database: Database
  readonly #stored: () => void
  /** Deadline at which the next step starts, past the dead rows before it. */
  #from = '-infinity'

  /** @param stored called when there may be new events */
  constructor(database: Database, stored: () => void) {
    this.#database = database
    this.#stored = stored
  }

  /**
   * Replaces expectations past their deadline by their events, in one commit. If an event ends one at the same time,
   * the first commit wins. Resolves with the time until the next step (ms), Infinity if none is open.
   */
  async step(): Promise<number> {
    let mayHaveStored = true
    try {
      const results = await this.#database.batch(this.#statements(), searchTimeoutMs)
      const [fired, next] = results.slice(-3) as [Fired[], { wait: string }[]]
      const { count, last, took } = fired[0] as Fired
      mayHaveStored = count !== '0'
      const isBusy = Number(count) === maxCommit
      this.#from = isBusy ? (last as string) : '-infinity'
      if (isBusy) return 0
      const waitMs = Number(next[0]?.wait ?? Number.POSITIVE_INFINITY)
      return Math.max(waitMs, Math.min(delayFactor * Number(took), maxDelayMs))
    } finally {
      // If the answer was lost, the events may be stored.
      if (mayHaveStored) this.#stored()
    }
  }

  #statements(): string {
    const { schema } = this.#database
    return `
      BEGIN ISOLATION LEVEL READ COMMITTED;
      SET LOCAL statement_timeout = ${searchTimeoutMs};
      ${turnOff('enable_seqscan', 'enable_bitmapscan', 'jit')};
      WITH overdue AS (
        DELETE FROM ${schema}.expectation WHERE hash = ANY (ARRAY(
          SELECT hash FROM ${schema}.expectation WHERE due_at <= now() AND due_at >= '${this.#from}'
          ORDER BY due_at LIMIT ${maxCommit} FOR UPDATE SKIP LOCKED
        )) RETURNING *
      ), given AS MATERIALIZED (
        SELECT nextval(${literal(`${schema}.event_id`)}) AS id, ordered.*
        FROM (SELECT * FROM overdue ORDER BY due_at) ordered
      ), new AS (
        INSERT INTO ${schema}.key (hash, id) SELECT hash, id FROM given
        ON CONFLICT DO NOTHING RETURNING id, hash
      ), stored AS (
        INSERT INTO ${schema}.event (id, media, event, received_at, trace, owed)
        SELECT id, media, event, due_at, trace, owed FROM given JOIN new USING (id, hash)
      )
      SELECT count(*)::text AS count, to_json(max(due_at)) #>> '{}' AS last, ${tookMs} AS took FROM given;
      SELECT ceil(extract(epoch FROM due_at - clock_timestamp()) * 1000)::text AS wait
      FROM ${schema}.expectation WHERE due_at > now() ORDER BY due_at LIMIT 1;
      COMMIT`
  }
}
