import type { Database } from '../database.ts'
import { tookMs, turnOff } from '../schema.ts'
import { claimedEvents } from './claimed.ts'
import { type CommittedMark, lastId } from './committed-mark.ts'

/** Minimum and maximum delay between searches (ms), and the share of time they may take in Postgres. */
const minDelayMs = 1_000
const maxDelayMs = 60_000
const maxTimeShare = 0.01

/** Statement timeout of a search (ms). It reads every dead row. */
const searchTimeoutMs = 30_000

/** Newest ids that may be uncommitted under a long writing transaction. A process stores up to 1,000 at a time. */
const maxUncommittedIds = 2_000

/**
 * Newest committed ids read again. It prunes their pages: without, the table grew 1.4 times as fast until a vacuum.
 */
const rereadIds = 500

/** Longest time between setting `due_at` and the commit. */
const recordedWithin = "interval '10 s'"

/** Where a claim starts reading each index, as SQL texts. */
export interface LowMarks extends FoundMarks {
  /** No event up to this id is still being committed. */
  readonly committed: string
}

export interface FoundMarks {
  /** No claimable event has a lower id, retries aside. */
  readonly event: string
  /** No claimable retry is due earlier. */
  readonly due: string
  /** No row of `claim` has a lower id. */
  readonly claim: string
  /** The state of the processes for which these marks hold: see {@link ownersText}. */
  readonly owners: string
}

/**
 * Tracks the {@link LowMarks} of this process. While a snapshot is open, Postgres can't remove dead rows, and a claim
 * from the beginning of an index would read every event handled since. Claims raise the marks to what they have read. A
 * replayed or late-committed event may then turn up below; the next search finds it. A released event can't wait that
 * long, since later ones of its media item must not overtake it: claims compare `owners`, which changes in the same
 * commit.
 */
export class LowMarkTracker {
  readonly #database: Database
  #marks: FoundMarks | undefined
  #searchAt = 0
  #isForgotten = false
  /** Set if the last search found no event: the id up to which all were committed. */
  #emptyAt: string | undefined
  readonly #committed: CommittedMark

  constructor(database: Database, committed: CommittedMark) {
    this.#database = database
    this.#committed = committed
  }

  /** Returns the marks. Searches first if that is due. */
  async get(): Promise<LowMarks> {
    let marks = this.#marks
    if (marks === undefined || performance.now() >= this.#searchAt) {
      this.#isForgotten = false
      marks = this.#marks = await this.#search()
    }
    return { ...marks, committed: this.#committed.id }
  }

  /** True if there are no events at all, and `lastId` is still the last id. Only a replay can then bring one back. */
  isEmptyAt(lastId: string): boolean {
    return lastId === this.#emptyAt
  }

  raise(marks: FoundMarks): void {
    this.#marks = marks
  }

  /** Forces a search before the next claim, even if one is running. */
  forget(): void {
    this.#isForgotten = true
    this.#searchAt = 0
  }

  /** Does not hold the claim lock: many dead or retrying rows make it slow. */
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

/** Selects {@link FoundMarks} as JSON, from expressions for the lowest rows, or NULL. */
export const marksJson = (
  schema: string,
  { claim, ...place }: Readonly<Record<'event' | 'due' | 'claim' | 'committed', string>>,
): string => `json_build_object(
  ${placeFields(schema, place)},
  'claim', (${claim})::text,
  'owners', ${ownersText(schema)}
)`

/** Selects a position below all rows that may be uncommitted. As JSON, since times as text depend on DateStyle. */
export const placeFields = (
  schema: string,
  { event, due, committed }: Readonly<Record<'event' | 'due' | 'committed', string>>,
): string => `
  'event', least(${event}, greatest(${lastId(schema)} - ${maxUncommittedIds}, least(${committed}, ${lastId(schema)}) - ${rereadIds}))::text,
  'due', least(${due}, now() - ${recordedWithin})`

/** Selects a text that changes with each release: a process ends or gives up claims, or a takeover writes its row. */
export const ownersText = (schema: string): string =>
  `(SELECT coalesce(string_agg(concat_ws(':', id, generation, CASE WHEN is_dead THEN owner.xmin::text END), ',' ORDER BY id), '')
    FROM ${schema}.owner)`
