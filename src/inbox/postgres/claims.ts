import type { Database } from './database.ts'
import { claimedColumns } from './job.ts'
import { claimLock, type Owner } from './owner.ts'

/** The number of a media's first events among which those that another process has are looked for. */
const depth = 100

/**
 * The claims of a process, as it knows them itself. It is asked before the database: an event that has started since is
 * shown as waiting, as it was then, and each event is counted once.
 */
export interface OwnClaims {
  /** The id of the process, as the owner of events. `undefined`: it handles none. */
  readonly owner?: string | undefined
  /** The ids of the claimed events that have started. The others wait for a slot or for their media. */
  readonly started?: readonly string[]
}

/** The answer to a claim. */
export interface Claimed {
  /** The events, each as the JSON that `PostgresJob` reads, in order of acceptance. */
  readonly events: readonly string[]
  /** The time until the next retry is due, in ms. `undefined`: no event waits for one. */
  readonly nextRetryInMs: number | undefined
}

/** The events that a process asks for. */
export interface ClaimRequest {
  /** The most events, besides as many whose retry is due. */
  readonly limit: number
  /** `true` to claim an event too that may have made a process crash. */
  readonly withSuspect: boolean
  /** The hashes of media that the process already has enough events of. */
  readonly crowded: readonly string[]
}

/**
 * Claims events that are due, the oldest first. Never one whose media has an event with another process, nor one before an
 * earlier event of its media, so that each media's events are handled in order across processes. A claim is not flushed to
 * the disk: if Postgres crashes and forgets it, this process can no longer record anything about the event. A process whose
 * lease is over claims nothing.
 */
export async function claim(database: Database, owner: Owner, request: ClaimRequest): Promise<Claimed> {
  const statements = claimStatements(database.schema, owner, request)
  const results = await database.measure('claim', () => database.batch(statements))
  const [claimed = [], [next] = []] = results.slice(-3) as [{ claimed: string }[], { wait: string | null }[]]
  const wait = next?.wait
  return {
    events: claimed.map(({ claimed: event }) => event),
    nextRetryInMs: wait === null || wait === undefined ? undefined : Math.max(0, Number(wait)),
  }
}

function claimStatements(
  schema: string,
  { id: owner, mayClaim }: Pick<Owner, 'id' | 'mayClaim'>,
  { limit, withSuspect, crowded }: ClaimRequest,
): string {
  // Without statistics, Postgres takes these queries for expensive, and the events for few: it would compile the query, read
  // all the events, or sort those of a media instead of reading the first ones from the index.
  const settings = ['synchronous_commit', 'jit', 'enable_seqscan', 'enable_bitmapscan']
    .map((name) => `SET LOCAL ${name} = off`)
    .join('; ')
  // Subqueries with a limit are answered from the index, one event at a time. The events of a media that are claimed come
  // first, except after replays.
  const isElsewhere = `SELECT 1 FROM (
      SELECT other.owner FROM ${schema}.event other WHERE other.media = event.media AND other.due_at IS NULL
      ORDER BY other.id LIMIT ${depth}
    ) first WHERE first.owner <> '${owner}' LIMIT 1`
  const isAfterSuspect = `SELECT 1 FROM ${schema}.event other WHERE other.media = event.media AND other.id < event.id
    AND other.crashes > 0 AND other.owner IS NULL AND other.due_at IS NULL LIMIT 1`
  const isAfterUnclaimed = `SELECT 1 FROM ${schema}.event other WHERE other.media = event.media AND other.id < event.id
    AND other.owner IS NULL AND other.due_at IS NULL AND other.id NOT IN (SELECT id FROM picked) LIMIT 1`
  const pick = (where: string, order: string, count: number) => `
    SELECT id FROM ${schema}.event
    WHERE owner IS NULL AND ${where} AND media <> ALL ('{${crowded}}') AND (${isElsewhere}) IS NULL
    ORDER BY ${order} LIMIT ${count} FOR UPDATE SKIP LOCKED`
  return `
    BEGIN ISOLATION LEVEL READ COMMITTED;
    ${settings};
    ${claimLock(schema)};
    WITH retries AS (${pick('due_at <= now()', 'due_at', limit)}),
    suspects AS (${pick(`due_at IS NULL AND crashes > 0 AND (${isAfterSuspect}) IS NULL`, 'crashes, id', withSuspect ? 1 : 0)}),
    others AS (${pick(`due_at IS NULL AND crashes = 0 AND (${isAfterSuspect}) IS NULL`, 'id', limit)}),
    picked AS (SELECT id FROM retries UNION ALL SELECT id FROM suspects UNION ALL SELECT id FROM others),
    claimed AS (
      UPDATE ${schema}.event SET owner = '${owner}', due_at = NULL
      WHERE id IN (SELECT id FROM picked) AND (${isAfterUnclaimed}) IS NULL
        AND ${mayClaim}
      RETURNING *
    )
    SELECT ${claimedColumns} FROM claimed ORDER BY id;
    SELECT ceil(extract(epoch FROM min(due_at) - clock_timestamp()) * 1000)::text AS wait
    FROM ${schema}.event WHERE due_at IS NOT NULL;
    COMMIT`
}
