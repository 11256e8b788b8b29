import { claimedEvents } from './claimed.ts'
import { type CommittedMark, lastId } from './committed-mark.ts'
import type { Database } from './database.ts'
import { tookMs, turnOff } from './schema.ts'

/**
 * The pause between two searches, in ms, at least and at most, and the part of the time that they may take in Postgres.
 */
const leastPauseMs = 1_000
const longestPauseMs = 60_000
const largestPart = 0.01

/** Maximum time of a search, in ms: it reads every dead row. */
const searchMs = 30_000

/**
 * The ids that may still be committed, among the newest ones, if a transaction that writes stays open for long: each process
 * stores up to 1,000 events at a time.
 */
const underway = 2_000

/**
 * The newest committed ids that claims read anyway. As Postgres reads handled events, it makes room for new ones on their
 * pages: without this, the table grew 1.4 times as fast until a vacuum.
 */
const readAnyway = 500

/** Maximum time until a statement commits after it sets `due_at`. */
const recordedWithin = "interval '10 s'"

/** The places at which a claim begins to read each index, as texts of SQL. */
export interface LowMarks extends FoundMarks {
  /** No event with this id or a lower one is still being committed. */
  readonly committed: string
}

/** The {@link LowMarks} that a claim or a search finds. */
export interface FoundMarks {
  /** No claimable event has a lower id, except events that wait for a retry. */
  readonly event: string
  /** No claimable retry is due earlier. */
  readonly due: string
  /** No claim of a process has a lower id. */
  readonly claim: string
  /** The processes for which these marks are valid. */
  readonly owners: string
  /** `true` if one of them is of an earlier version, which sees a claim only if it is written in the event. */
  readonly hasEarlier: boolean
}

/**
 * Keeps the {@link LowMarks} of this process. As long as a session has a snapshot open, Postgres removes no dead rows.
 * A claim that starts at the beginning of an index would read the rows of all events that were handled since.
 *
 * Each claim raises the marks to the rows that it has read. An event can later appear below them, if it was replayed or
 * committed late. The next search finds it. A released event has to come before the later ones of its media item, so a
 * claim compares `owners`, which changes in the same commit.
 */
export class LowMarksOf {
  readonly #database: Database
  #marks: FoundMarks | undefined
  #searchAt = 0
  #isForgotten = false
  readonly #committed: CommittedMark

  constructor(database: Database, committed: CommittedMark) {
    this.#database = database
    this.#committed = committed
  }

  /** Reads the marks, or searches for them. */
  async get(): Promise<LowMarks> {
    let marks = this.#marks
    if (marks === undefined || performance.now() >= this.#searchAt) {
      this.#isForgotten = false
      marks = this.#marks = await this.#search()
    }
    return { ...marks, committed: this.#committed.id }
  }

  raise(marks: FoundMarks): void {
    this.#marks = marks
  }

  /** Searches again before the next claim, even if a search is running. */
  forget(): void {
    this.#isForgotten = true
    this.#searchAt = 0
  }

  /** The search does not hold the lock of the claims, since it is slow if many rows are dead or wait for a retry. */
  async #search(): Promise<FoundMarks> {
    const { schema } = this.#database
    const first = `SELECT id FROM ${schema}.event WHERE owner IS NULL AND due_at IS NULL
      AND id NOT IN (SELECT id FROM (${claimedEvents(schema)}) claimed) ORDER BY id LIMIT 1`
    const firstDue = `SELECT due_at FROM ${schema}.event WHERE due_at IS NOT NULL ORDER BY due_at LIMIT 1`
    const results = await this.#database.batch(
      `BEGIN ISOLATION LEVEL READ COMMITTED;
       SET LOCAL statement_timeout = ${searchMs};
       ${turnOff('jit', 'enable_seqscan')};
       SELECT ${marksJson(schema, {
         event: `(${first})`,
         due: `(${firstDue})`,
         claim: `coalesce((SELECT min(id) FROM ${schema}.claim), 0)`,
         committed: this.#committed.id,
       })}::text AS marks;
       SELECT ${tookMs} AS took;
       COMMIT`,
      searchMs,
    )
    const [[found] = [], [duration] = []] = results.slice(-3)
    const pauseMs = Math.max(leastPauseMs, Math.min(Number(duration?.['took']) / largestPart, longestPauseMs))
    this.#searchAt = this.#isForgotten ? 0 : performance.now() + pauseMs
    return JSON.parse(found?.['marks'] as string)
  }
}

/**
 * Selects {@link FoundMarks} as JSON.
 * @param lowest expressions for the lowest rows of the search, or NULL
 */
export const marksJson = (
  schema: string,
  { claim, ...place }: Readonly<Record<'event' | 'due' | 'claim' | 'committed', string>>,
): string => `json_build_object(
  ${placeFields(schema, place)},
  'claim', (${claim})::text,
  'owners', ${ownersText(schema)},
  'hasEarlier', EXISTS (SELECT FROM ${schema}.owner WHERE version IS NULL)
)`

/** Selects a place as fields of JSON. It is below the rows that may still be committed. */
export const placeFields = (
  schema: string,
  { event, due, committed }: Readonly<Record<'event' | 'due' | 'committed', string>>,
): string => `
  'event', least(${event}, greatest(${lastId(schema)} - ${underway}, least(${committed}, ${lastId(schema)}) - ${readAnyway}))::text,
  'due', least(${due}, now() - ${recordedWithin})::text`

/**
 * Selects a text that changes whenever a process releases events: it ends, its claims are given up, or those of a dead
 * process are taken over in steps. Each step writes its row.
 */
export const ownersText = (schema: string): string =>
  `(SELECT string_agg(concat_ws(':', id, generation, CASE WHEN is_dead THEN owner.xmin::text END), ',' ORDER BY id)
    FROM ${schema}.owner)`
