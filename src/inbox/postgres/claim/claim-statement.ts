import type { HeldEvent } from '../../sql/event.ts'
import { type Claimant, claimLock } from '../lease.ts'
import type { Parameter } from '../literals.ts'
import { largestId, turnOff } from '../schema.ts'
import { ownHandlers } from './awaited.ts'
import { claimedEvents } from './claimed.ts'
import { claimedColumns } from './claimed-event.ts'
import { type TransactionsSeen, transactionsSeen } from './committed-mark.ts'
import { type FoundMarks, type LowMarks, marksJson, ownersText, placeFields } from './low-marks.ts'

/**
 * The number of events that a claim examines, and of due retries. It is larger than the number of events that may still
 * be committed.
 */
const windowSize = 5_000

/** What a claim is asked for. */
export interface ClaimValues {
  readonly owner: Claimant
  /** The maximum number of events. A claim can return the same number of due retries in addition. */
  readonly limit: number
  /** `true` to claim also a suspect. */
  readonly withSuspect: boolean
  /** The hashes of media items whose events are not claimed. */
  readonly without: readonly string[]
  /** The events that the process has. */
  readonly held: readonly HeldEvent[]
  /** The time for which keys are remembered (ms). Older events await no handlers. */
  readonly ttlMs: number
  readonly low: LowMarks
  /** The place at which the examined events begin. */
  readonly from: Place
}

/** A place among the events by their id, and among the retries by their due time. */
export type Place = Pick<LowMarks, 'event' | 'due'>

/** The parameters of a claim, in their order, with their types. */
const parameterTypes = {
  owner: 'uuid',
  generation: 'integer',
  limit: 'bigint',
  suspects: 'bigint',
  without: 'bigint[]',
  held: 'bigint[]',
  heldReleases: 'integer[]',
  owners: 'text',
  lowClaim: 'bigint',
  lowEvent: 'bigint',
  committed: 'bigint',
  fromEvent: 'bigint',
  fromDue: 'timestamptz',
  ttl: 'interval',
}

type ParameterName = keyof typeof parameterTypes

/** The values of the parameters, in their order. */
export function claimValues({ owner, low, from, ...request }: ClaimValues): readonly string[] {
  const values: Record<ParameterName, unknown> = {
    owner: owner.id,
    generation: owner.generation,
    limit: request.limit,
    suspects: request.withSuspect ? 1 : 0,
    without: `{${request.without}}`,
    held: `{${request.held.map(({ id }) => id)}}`,
    heldReleases: `{${request.held.map(({ releases }) => releases)}}`,
    owners: low.owners,
    lowClaim: low.claim,
    lowEvent: low.event,
    committed: low.committed,
    fromEvent: from.event,
    fromDue: from.due,
    ttl: `${request.ttlMs} ms`,
  }
  return (Object.keys(parameterTypes) as ParameterName[]).map((name) => `${values[name]}`)
}

/** What the parts of the statement are made of: the schema, the order, and each parameter. */
interface Inputs extends Readonly<Record<ParameterName, string>> {
  readonly schema: string
  readonly isStrict: boolean
}

/**
 * Makes the statement of a claim. It returns the claimed events in order, and then what it found.
 * @param isStrict true to claim nothing from behind a retry
 */
export function claimStatement(schema: string, parameter: Parameter, isStrict = false): string {
  const names = Object.entries(parameterTypes).map(([name, type], index) => [name, `${parameter(index + 1)}::${type}`])
  const inputs: Inputs = { schema, isStrict, ...Object.fromEntries(names) }
  return `
    WITH ${taken(inputs)},
    ${chooseEvents(inputs)},
    ${claimChosen(inputs)},
    published AS (
      INSERT INTO ${schema}.claim (owner, events, releases)
      SELECT ${inputs.owner}, ${inputs.held} || array_agg(id), ${inputs.heldReleases} || array_agg(releases)
      FROM claimed HAVING count(*) > 0 RETURNING 1
    ),
    replaced AS (
      DELETE FROM ${schema}.claim
      WHERE id >= ${inputs.lowClaim} AND owner = ${inputs.owner} AND EXISTS (SELECT FROM published)
    ),
    ${examineEvents(inputs)}
    SELECT id, ${claimedColumns} FROM claimed
    UNION ALL SELECT NULL, ${findings(inputs)}
    ORDER BY id NULLS LAST`
}

/**
 * Makes the message of a claim. The second result from the end is that of the statement.
 * @param adopt the statement that adopts events
 */
export function claimMessage(schema: string, statement: string, adopt = ''): string {
  // Without statistics, Postgres assumes that these queries are expensive, and that there are few events: it would
  // compile the query, read all the events, or sort those of a media item instead of reading the first ones from the
  // index. So the best plan does not depend on the values either.
  return `
    BEGIN ISOLATION LEVEL READ COMMITTED;
    ${turnOff('synchronous_commit', 'jit', 'enable_seqscan')};
    ${adopt};
    ${turnOff('enable_bitmapscan')};
    SET LOCAL plan_cache_mode = force_generic_plan;
    ${claimLock(schema)};
    ${statement};
    COMMIT`
}

/** The condition that the process has its lease, and has not given up the claim. */
const mayClaim = ({ schema, owner, generation }: Inputs): string => `EXISTS (SELECT FROM ${schema}.owner
  WHERE owner.id = ${owner} AND NOT is_dead AND generation = ${generation})`

/**
 * Selects the events that processes have. Their number matters, and not that of the unclaimed events before them. Each
 * process publishes its events with each claim, in the same commit and under the lock of all claims, so that none is
 * missing. They pass through arrays, of which Postgres expects ten elements. It expects as many rows of `claim` as its
 * pages could have, and while a snapshot is open, most of these are dead: it would make room for 30,000 events in each
 * of its hash tables, and a claim would take three times as long.
 */
const taken = ({ schema, owner, owners, lowClaim, held }: Inputs): string => `
  published_elsewhere AS (${claimedEvents(schema, `claim.id >= ${lowClaim} AND claim.owner <> ${owner}`)}),
  elsewhere AS MATERIALIZED (
    SELECT held.* FROM (SELECT array_agg(id) AS ids, array_agg(media) AS media FROM published_elsewhere) arrays,
      unnest(ids, media) AS held (id, media)
  ),
  taken AS MATERIALIZED (SELECT id FROM elsewhere UNION ALL SELECT unnest(${held})),
  current AS MATERIALIZED (SELECT ${ownersText(schema)} = ${owners} AS is_current)`

const isCurrent = '(SELECT is_current FROM current)'

/** The condition that this process may have an event of a media item. */
const isFree = (inputs: Inputs, media: string): string => `(
  ${media} NOT IN (SELECT unnest(${inputs.without})) AND ${media} NOT IN (SELECT media FROM elsewhere)
)`

/** The condition that no process has an event, and that it does not wait for a retry. */
const isUnclaimed = (row: string): string => `${row}.due_at IS NULL AND ${row}.id NOT IN (SELECT id FROM taken)`

const isBehind = (schema: string, row: string, condition: string): string => `(
  SELECT 1 FROM ${schema}.event other WHERE other.media = ${row}.media AND other.id < ${row}.id
    AND ${condition} LIMIT 1
) IS NOT NULL`

const isAfter = (schema: string, row: string, condition: string): string =>
  isBehind(schema, row, `${isUnclaimed('other')} AND ${condition}`)

/** In a strict order, the condition that no earlier event of the media item is retrying, unless this claim takes it. */
const isNext = ({ schema, isStrict }: Inputs, row: string): string =>
  isStrict
    ? `NOT ${isBehind(schema, row, 'other.due_at IS NOT NULL AND other.id NOT IN (SELECT id FROM retries)')}`
    : 'true'

const isWaiting = (inputs: Inputs, row: string): string => `${isUnclaimed(row)} AND ${row}.crashes = 0
  AND NOT ${isAfter(inputs.schema, row, 'other.crashes > 0')} AND ${isNext(inputs, row)}`

/** The events that a claim examines. It is a subquery, since Postgres reads no more of it than it needs. */
const earliest = ({ schema, fromEvent }: Inputs, where = 'true'): string => `(
  SELECT id, media, due_at, crashes FROM ${schema}.event
  WHERE id >= ${fromEvent} AND ${isCurrent} AND ${where} ORDER BY id LIMIT ${windowSize}
) earliest`

/** The retries that a claim examines. */
const due = ({ schema, fromDue }: Inputs): string => `(
  SELECT id, media, due_at, received_at, awaits FROM ${schema}.event
  WHERE due_at <= now() AND due_at >= ${fromDue} ORDER BY due_at LIMIT ${windowSize}
) due`

/** The condition that a due event awaits no handlers, or one of this process, or has become too old to await any. */
const isForThis = ({ schema, owner, ttl }: Inputs): string => `
  (awaits IS NULL OR awaits && ${ownHandlers(schema, owner)} OR received_at <= now() - ${ttl})`

/**
 * Chooses the first events, and the first due retries. It never chooses an event after an unclaimed one of its media
 * item.
 */
const chooseEvents = (inputs: Inputs): string => {
  const { schema, limit, suspects, lowEvent, isStrict } = inputs
  const isFirst = isStrict ? `NOT ${isBehind(schema, 'due', 'other.id NOT IN (SELECT id FROM taken)')}` : 'true'
  return `
    retries AS MATERIALIZED (
      SELECT id, media FROM ${due(inputs)} WHERE ${isFree(inputs, 'due.media')} AND ${isForThis(inputs)} AND ${isFirst}
      ORDER BY due_at LIMIT ${limit}
    ),
    others AS MATERIALIZED (
      SELECT id, media FROM ${earliest(inputs)}
      WHERE ${isWaiting(inputs, 'earliest')} AND ${isFree(inputs, 'earliest.media')} ORDER BY id LIMIT ${limit}
    ),
    suspects AS MATERIALIZED (
      SELECT id, media FROM ${schema}.event suspect
      WHERE ${isUnclaimed('suspect')} AND crashes > 0 AND ${isCurrent}
        AND ${isFree(inputs, 'suspect.media')} AND ${isNext(inputs, 'suspect')}
        AND NOT ${isAfter(schema, 'suspect', `other.id >= ${lowEvent} AND other.id NOT IN (SELECT id FROM others)`)}
      ORDER BY crashes, id LIMIT ${suspects}
    ),
    chosen AS MATERIALIZED (SELECT * FROM retries UNION SELECT * FROM suspects UNION SELECT * FROM others)`
}

/** Claims the chosen events. Only the row of a retry is written, since it must no longer be due. */
const claimChosen = (inputs: Inputs): string => {
  const { schema } = inputs
  return `
    locked AS (
      SELECT id FROM ${schema}.event WHERE id = ANY (ARRAY(SELECT id FROM retries)) FOR UPDATE SKIP LOCKED
    ),
    skipped AS (SELECT id, media FROM retries WHERE id NOT IN (SELECT id FROM locked)),
    changed AS (
      UPDATE ${schema}.event SET since = coalesce(due_at, since), due_at = NULL, awaits = NULL
      WHERE id = ANY (ARRAY(SELECT id FROM locked)) AND ${mayClaim(inputs)}
        AND NOT EXISTS (SELECT FROM skipped WHERE skipped.media = event.media AND skipped.id < event.id)
      RETURNING *
    ),
    claimed AS (
      SELECT * FROM changed
      UNION ALL
      SELECT * FROM ${schema}.event
      WHERE id = ANY (ARRAY(SELECT id FROM chosen EXCEPT SELECT id FROM retries)) AND ${mayClaim(inputs)}
        AND media NOT IN (SELECT media FROM skipped)
    )`
}

/** The other findings of a claim, as JSON. */
export interface Found {
  /**
   * The low marks, if the claim began at them. `null`: the given low marks are no longer valid, and only due retries were
   * chosen, which have no order.
   */
  readonly low: FoundMarks | null
  readonly transactions: TransactionsSeen
  /** The place at which the next claim continues. */
  readonly next: Place
  /** `true` if there are more events that were not examined. */
  readonly hasMore: boolean
  /** The hashes of the media items with earlier events that could not be claimed. */
  readonly blocked: readonly string[]
  /** The time until the next retry is due, in ms. `null` if no event waits for a retry. */
  readonly nextRetryInMs: number | null
}

const isNotClaimed = 'id NOT IN (SELECT id FROM claimed)'

/** Selects what the claim has examined: up to the last event that it chose, if it could choose no more. */
const examineEvents = (inputs: Inputs): string => `
    last AS MATERIALIZED (SELECT max(id) AS id FROM others HAVING count(*) = ${inputs.limit}),
    examined AS MATERIALIZED (
      SELECT id, media, ${isUnclaimed('earliest')} AND ${isNotClaimed} AS is_unclaimed
      FROM ${earliest(inputs, `id <= coalesce((SELECT id FROM last), ${largestId})`)}
    )`

const findings = (inputs: Inputs): string => {
  const { schema, limit, lowClaim, fromDue, committed } = inputs
  return `(
    SELECT json_build_object(
      'transactions', ${transactionsSeen(schema)},
      'low', CASE WHEN ${isCurrent} THEN ${marksJson(schema, {
        event: `coalesce((SELECT min(id) FROM examined WHERE is_unclaimed), last_id)`,
        due: `(SELECT due_at FROM ${due(inputs)} WHERE ${isNotClaimed} ORDER BY due_at LIMIT 1)`,
        claim: `coalesce((SELECT min(id) FROM ${schema}.claim WHERE id >= ${lowClaim}), ${lowClaim})`,
        committed,
      })} END,
      'next', json_build_object(${placeFields(schema, { event: 'last_id', due: 'last_due', committed })}),
      'hasMore', last_id IS NOT NULL OR last_due IS NOT NULL,
      'blocked', coalesce((
        SELECT json_agg(DISTINCT media::text) FROM examined WHERE is_unclaimed AND last_id IS NOT NULL
      ), '[]'),
      'nextRetryInMs', (
        SELECT greatest(0, ceil(extract(epoch FROM due_at - clock_timestamp()) * 1000))
        FROM ${schema}.event WHERE due_at > now() ORDER BY due_at LIMIT 1
      )
    )::text FROM (SELECT
      coalesce((SELECT id FROM last), (SELECT max(id) FROM examined HAVING count(*) = ${windowSize})) AS last_id,
      CASE WHEN (SELECT count(*) FROM retries) = ${limit} THEN (
        SELECT max(due_at) FROM ${due(inputs)} WHERE id IN (SELECT id FROM retries)
      ) ELSE (
        SELECT due_at FROM ${schema}.event WHERE due_at <= now() AND due_at >= ${fromDue}
        ORDER BY due_at OFFSET ${windowSize - 1} LIMIT 1
      ) END AS last_due
      OFFSET 0
    ) end_of_claim
  )`
}
