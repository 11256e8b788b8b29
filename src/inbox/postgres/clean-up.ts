import type { Database } from './database.ts'
import { largestId, turnOff } from './schema.ts'

/** Expired keys per step, and maximum number of other rows removed or corrected. */
const sliceSize = 2_000

/** Delay before the next step (ms): once done, while there is more, while it only finds rows that must stay. */
const delayMs = { idle: 60_000, busy: 100, fruitless: 1_000 }

/** Time after a clean-up for which an idle database is left alone (ms). */
const recentMs = 3_600_000

/** The position before all keys, records and expectation ends. */
const start = { key: '-infinity', record: '0', end: '-infinity' }

interface Progress {
  /** Acceptance time of the last key examined. `null` if there were no more. */
  readonly key: string | null
  readonly record: string | null
  readonly end: string | null
  readonly hasRemoved: boolean
}

/**
 * Removes expired keys and their events' records, a slice at a time. Keys of unfinished events and dead letters stay.
 * Also removes expired expectation ends and names of removed handlers, and corrects delays.
 */
export class CleanUp {
  readonly #database: Database
  readonly #ttlMs: number
  /** Where the next step starts: from the beginning, each would examine the same keys that must stay. */
  #cursor = start
  /** When a step left nothing to do (`performance.now()`). */
  #doneAt = Number.NEGATIVE_INFINITY

  constructor(database: Database, ttlMs: number) {
    this.#database = database
    this.#ttlMs = ttlMs
  }

  get isRecent(): boolean {
    return performance.now() - this.#doneAt < Math.min(recentMs, this.#ttlMs)
  }

  /** Runs the next step. Returns the delay before another (ms). */
  async step(): Promise<number> {
    const results = await this.#database.patient.batch(this.#statements())
    const { key, record, end, hasRemoved } = JSON.parse(results.at(-2)?.[0]?.['progress'] as string) as Progress
    const hasCorrected = results.slice(2, 4).some((rows) => rows.length === sliceSize)
    const isBusy = hasCorrected || key !== null || record !== null || end !== null
    this.#cursor = isBusy ? { key: key ?? 'infinity', record: record ?? largestId, end: end ?? 'infinity' } : start
    this.#doneAt = isBusy ? Number.NEGATIVE_INFINITY : performance.now()
    return delayMs[isBusy ? (hasCorrected || hasRemoved ? 'busy' : 'fruitless') : 'idle']
  }

  #statements(): string {
    const { schema } = this.#database
    const expired = `now() - ${this.#ttlMs} * interval '1 ms'`
    // Records are read by id, but expire by the end of their event: a replay is handled long after it was accepted.
    const isRemembered = `to_timestamp(((record ->> 3)::float8 + (record ->> 4)::float8) / 1000) >= ${expired}`
    const firstRemembered = `SELECT id FROM ${schema}.key WHERE accepted_at >= ${expired} ORDER BY accepted_at LIMIT 1`
    // Events accepted together share a time, so a step examines all of them. Subqueries with a limit, no JIT, and keys
    // in an array: otherwise Postgres compares every key with every row of a subquery.
    return `
      BEGIN;
      ${turnOff('jit')};
      ${correctDelays(`${schema}.event`)};
      ${correctDelays(`${schema}.expectation`)};
      DELETE FROM ${schema}.removed_handler WHERE removed_at < ${expired};
      WITH examined AS MATERIALIZED (
        SELECT hash, id, accepted_at FROM ${schema}.key
        WHERE accepted_at > '${this.#cursor.key}' AND accepted_at < ${expired}
        ORDER BY accepted_at FETCH FIRST ${sliceSize} ROWS WITH TIES
      ), removed AS (
        DELETE FROM ${schema}.key WHERE hash = ANY (ARRAY(
          SELECT hash FROM ${schema}.key WHERE hash = ANY (ARRAY(
            SELECT hash FROM examined
            WHERE (SELECT 1 FROM ${schema}.event WHERE event.id = examined.id LIMIT 1) IS NULL
              AND (SELECT 1 FROM ${schema}.dead_letter WHERE event_id = examined.id LIMIT 1) IS NULL
              AND (SELECT 1 FROM ${schema}.handled WHERE handled.id = examined.id AND ${isRemembered} LIMIT 1) IS NULL
          )) FOR UPDATE SKIP LOCKED
        )) RETURNING 1
      ), read AS MATERIALIZED (
        SELECT id, ${isRemembered} AS is_remembered FROM ${schema}.handled
        WHERE id > ${this.#cursor.record} AND id < coalesce((${firstRemembered}), ${largestId})
        ORDER BY id LIMIT ${sliceSize} FOR UPDATE SKIP LOCKED
      ), forgotten AS (
        DELETE FROM ${schema}.handled WHERE id = ANY (ARRAY(SELECT id FROM read WHERE NOT is_remembered)) RETURNING 1
      ), ended AS (
        DELETE FROM ${schema}.expectation_end WHERE subject = ANY (ARRAY(
          SELECT subject FROM ${schema}.expectation_end
          WHERE accepted_at >= '${this.#cursor.end}' AND accepted_at < ${expired}
          ORDER BY accepted_at LIMIT ${sliceSize} FOR UPDATE SKIP LOCKED
        )) RETURNING accepted_at
      )
      SELECT json_build_object(
        'key', (SELECT max(accepted_at) FROM examined HAVING count(*) >= ${sliceSize}),
        'record', (SELECT max(id)::text FROM read HAVING count(*) >= ${sliceSize}),
        'end', (SELECT max(accepted_at) FROM ended HAVING count(*) >= ${sliceSize}),
        'hasRemoved', EXISTS (SELECT FROM removed) OR EXISTS (SELECT FROM forgotten) OR EXISTS (SELECT FROM ended)
      )::text AS progress;
      COMMIT`
  }
}

/** Restarts delays that were set while Postgres' clock was ahead: a retry in 30 s could be due in 30 days. */
const correctDelays = (table: string): string => `
  UPDATE ${table} SET due_at = now() + (due_at - delayed_at), delayed_at = now() WHERE ctid = ANY (ARRAY(
    SELECT ctid FROM ${table} WHERE delayed_at > clock_timestamp() AND due_at IS NOT NULL
    ORDER BY delayed_at LIMIT ${sliceSize} FOR UPDATE SKIP LOCKED
  )) RETURNING 1`
