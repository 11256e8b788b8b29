import type { Database } from '../database.ts'
import { tookMs, turnOff } from '../schema.ts'
import { claimedEvents } from './claimed.ts'
import { type CommittedMark, lastId } from './committed-mark.ts'

/**
 * The pause between two searches, in ms, at least and at most, and the part of the time that they may take in Postgres.
 */
const minDelayMs = 1_000
const maxDelayMs = 60_000
const maxTimeShare = 0.01

/** Maximum time of a search, in ms: it reads every dead row. */
const searchTimeoutMs = 30_000

/**
 * The ids that may still be committed, among the newest ones, if a transaction that writes stays open for long: each process
 * stores up to 1,000 events at a time.
 */
const maxUncommittedIds = 2_000

/**
 * The newest committed ids that claims read anyway. As Postgres reads handled events, it makes room for new ones on their
 * pages: without this, the table grew 1.4 times as fast until a vacuum.
 */
const rereadIds = 500

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
}

/**
 * Keeps the {@link LowMarks} of this process. As long as a session has a snapshot open, Postgres removes no dead rows.
 * A claim that starts at the beginning of an index would read the rows of all events that were handled since.
 *
 * Each claim raises the marks to the rows that it has read. An event can later appear below them, if it was replayed or
 * committed late. The next search finds it. A released event has to come before the later ones of its media item, so a
 * claim compares `owners`, which changes in the same commit.
 */
export class LowMarkTracker {
  readonly #database: Database
  #marks: FoundMarks | undefined
  #searchAt = 0
  #isForgotten = false
  /** Set if the last search found no event: the id up to which none was still being committed. */
  #emptyAt: string | undefined
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

  /**
   * Returns `true` if there are no events, neither waiting nor claimed nor retrying, and this is the last id that one has been
   * given. Only a replay can bring one back then.
   */
  isEmptyAt(lastId: string): boolean {
    return lastId === this.#emptyAt
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
    const committed = this.#committed.id
    const results = await this.#database.batch(
      `BEGIN ISOLATION LEVEL READ COMMITTED;
       SET LOCAL statement_timeout = ${searchTimeoutMs};
       ${turnOff('jit', 'enable_seqscan')};
       WITH claimed AS MATERIALIZED (${claimedEvents(schema)}), first AS MATERIALIZED (
         SELECT id FROM ${schema}.event WHERE due_at IS NULL AND id NOT IN (SELECT id FROM claimed) ORDER BY id LIMIT 1
       ), first_due AS MATERIALIZED (
         SELECT due_at FROM ${schema}.event WHERE due_at IS NOT NULL ORDER BY due_at LIMIT 1
       )
       SELECT ${marksJson(schema, {
         event: '(SELECT id FROM first)',
         due: '(SELECT due_at FROM first_due)',
         claim: `coalesce((SELECT min(id) FROM ${schema}.claim), 0)`,
         committed,
       })}::text AS marks,
         (NOT EXISTS (SELECT FROM claimed UNION ALL SELECT FROM first UNION ALL SELECT FROM first_due))::text AS is_empty;
       SELECT ${tookMs} AS took;
       COMMIT`,
      searchTimeoutMs,
    )
    const [[found] = [], [duration] = []] = results.slice(-3)
    const delayMs = Math.max(minDelayMs, Math.min(Number(duration?.['took']) / maxTimeShare, maxDelayMs))
    this.#emptyAt = found?.['is_empty'] === 'true' ? committed : undefined
    this.#searchAt = this.#isForgotten ? 0 : performance.now() + delayMs
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
  'owners', ${ownersText(schema)}
)`

/**
 * Selects a place as fields of JSON. It is below the rows that may still be committed. In JSON a time is as in ISO 8601; as
 * a text, it would depend on DateStyle, and may not be read back.
 */
export const placeFields = (
  schema: string,
  { event, due, committed }: Readonly<Record<'event' | 'due' | 'committed', string>>,
): string => `
  'event', least(${event}, greatest(${lastId(schema)} - ${maxUncommittedIds}, least(${committed}, ${lastId(schema)}) - ${rereadIds}))::text,
  'due', least(${due}, now() - ${recordedWithin})`

/**
 * Selects a text that changes whenever a process releases events: it ends, its claims are given up, or those of a dead
 * process are taken over in steps. Each step writes its row.
 */
export const ownersText = (schema: string): string =>
  `(SELECT coalesce(string_agg(concat_ws(':', id, generation, CASE WHEN is_dead THEN owner.xmin::text END), ',' ORDER BY id), '')
    FROM ${schema}.owner)`
