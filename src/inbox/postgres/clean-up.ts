import { activityKeptMs } from '../operations/activity.ts'
import type { Database } from './database.ts'
import { largestId, turnOff } from './schema.ts'

/** The number of expired keys in a step, and the maximum number of records of handled events that a step removes. */
const sliceSize = 2_000

/** Pauses between two clean-ups, in ms: usually, while there is more to clean up, and while it only finds what stays. */
const pauses = { usual: 60_000, busy: 100, futile: 1_000 }

/** The place before the first key, the first record and the first end of expectations. */
const beginning = { key: '-infinity', record: '0', end: '-infinity' }

interface Progress {
  /** The time of acceptance of the last examined key. `null` if there were no more keys. */
  readonly key: string | null
  readonly record: string | null
  readonly end: string | null
  /** `true` if the step removed anything. */
  readonly hasRemoved: boolean
}

/**
 * Removes expired keys and the records of their events, some at a time. The keys of unfinished events and of dead
 * letters stay. It also removes expired ends of expectations, and activity that is older than a day.
 */
export class CleanUp {
  readonly #database: Database
  readonly #ttlMs: number
  /**
   * The place at which the next step begins. A step from the beginning would always examine the same keys that have to
   * stay.
   */
  #after = beginning

  constructor(database: Database, ttlMs: number) {
    this.#database = database
    this.#ttlMs = ttlMs
  }

  /** Makes the next step. Returns the pause before another one, in ms. */
  async step(): Promise<number> {
    const results = await this.#database.batch(this.#statements())
    const { key, record, end, hasRemoved } = JSON.parse(results.at(-3)?.[0]?.['progress'] as string) as Progress
    const isBusy = key !== null || record !== null || end !== null
    this.#after = isBusy ? { key: key ?? 'infinity', record: record ?? largestId, end: end ?? 'infinity' } : beginning
    return pauses[isBusy ? (hasRemoved ? 'busy' : 'futile') : 'usual']
  }

  #statements(): string {
    const { schema } = this.#database
    const expired = `now() - ${this.#ttlMs} * interval '1 ms'`
    // The record is removed by its id, since a process of version 1 removes only the key.
    const firstRemembered = `SELECT id FROM ${schema}.key WHERE accepted_at >= ${expired} ORDER BY accepted_at LIMIT 1`
    // Events that were accepted together have one time, so a step examines all of them. The subqueries have a limit,
    // nothing is compiled, and the keys are an array: otherwise Postgres compares every key with every row of a
    // subquery.
    return `
      BEGIN;
      ${turnOff('jit')};
      WITH examined AS MATERIALIZED (
        SELECT hash, id, accepted_at FROM ${schema}.key
        WHERE accepted_at > '${this.#after.key}' AND accepted_at < ${expired}
        ORDER BY accepted_at FETCH FIRST ${sliceSize} ROWS WITH TIES
      ), removed AS (
        DELETE FROM ${schema}.key WHERE hash = ANY (ARRAY(
          SELECT hash FROM ${schema}.key WHERE hash = ANY (ARRAY(
            SELECT hash FROM examined
            WHERE (SELECT 1 FROM ${schema}.event WHERE event.id = examined.id LIMIT 1) IS NULL
              AND (SELECT 1 FROM ${schema}.dead_letter WHERE event_id = examined.id LIMIT 1) IS NULL
          )) FOR UPDATE SKIP LOCKED
        )) RETURNING 1
      ), forgotten AS (
        DELETE FROM ${schema}.handled WHERE id = ANY (ARRAY(
          SELECT id FROM ${schema}.handled
          WHERE id > ${this.#after.record} AND id < coalesce((${firstRemembered}), ${largestId})
          ORDER BY id LIMIT ${sliceSize} FOR UPDATE SKIP LOCKED
        )) RETURNING id
      ), ended AS (
        DELETE FROM ${schema}.expectation_end WHERE subject = ANY (ARRAY(
          SELECT subject FROM ${schema}.expectation_end
          WHERE accepted_at >= '${this.#after.end}' AND accepted_at < ${expired}
          ORDER BY accepted_at LIMIT ${sliceSize} FOR UPDATE SKIP LOCKED
        )) RETURNING accepted_at
      )
      SELECT json_build_object(
        'key', (SELECT max(accepted_at)::text FROM examined HAVING count(*) >= ${sliceSize}),
        'record', (SELECT max(id)::text FROM forgotten HAVING count(*) >= ${sliceSize}),
        'end', (SELECT max(accepted_at)::text FROM ended HAVING count(*) >= ${sliceSize}),
        'hasRemoved', EXISTS (SELECT FROM removed) OR EXISTS (SELECT FROM forgotten) OR EXISTS (SELECT FROM ended)
      )::text AS progress;
      DELETE FROM ${schema}.activity WHERE minute < now() - ${activityKeptMs} * interval '1 ms';
      COMMIT`
  }
}
