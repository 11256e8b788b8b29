import type { HeldEvent } from '../../sql/event.ts'
import { type Claimant, claimLock } from '../lease.ts'
import type { Parameter } from '../literals.ts'
import { largestId, turnOff } from '../schema.ts'
import { ownHandlers } from './awaited.ts'
import { claimedEvents } from './claimed.ts'
import { claimedColumns } from './claimed-event.ts'
import { type TransactionsSeen, transactionsSeen } from './committed-mark.ts'
import { type FoundMarks, type LowMarks, marksJson, ownersText, placeFields } from './low-marks.ts'

/** Events examined per claim, and due retries. Must exceed the number of events that may still be uncommitted. */
const windowSize = 5_000

export interface ClaimValues {
  readonly owner: Claimant
  /** Maximum number of events. Up to as many due retries come on top. */
  readonly limit: number
  readonly withSuspect: boolean
  /** Hashes of media items to skip. */
  readonly without: readonly string[]
  readonly held: readonly HeldEvent[]
  /** How long keys are remembered (ms). Older events await no handlers. */
  readonly ttlMs: number
  readonly low: LowMarks
  readonly from: ClaimPosition
}

/** A position in both indexes: by id for events, by due time for retries. */
export type ClaimPosition = Pick<LowMarks, 'event' | 'due'>

/** Parameters in order, with their types. */
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

/** The schema, the order, and the placeholder of each parameter. */
interface Inputs extends Readonly<Record<ParameterName, string>> {
  readonly schema: string
  readonly isStrict: boolean
}

/** Builds the claim statement: the claimed events in order, then a row of findings. Strict: nothing behind a retry. */
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

/** Builds the claim's message. The result of `statement` is the second from the end. `adopt` runs first. */
export function claimMessage(schema: string, statement: string, adopt = ''): string {
  // Without statistics, Postgres would JIT-compile, scan the table, or sort a media item's events instead of reading
  // the first ones from the index. With these settings, one generic plan suits all values.
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

/** Condition: the process holds its lease, and has not given up this claim. */
const mayClaim = ({ schema, owner, generation }: Inputs): string => `EXISTS (SELECT FROM ${schema}.owner
  WHERE owner.id = ${owner} AND NOT is_dead AND generation = ${generation})`

/**
 * Selects the events that processes hold: the cost grows with these, not with unclaimed ones. Each process publishes
 * what it holds with each claim, in the same commit and under the claim lock, so none is missed. The arrays fix the
 * planner's estimates: over dead rows of `claim`, kept by an open snapshot, it would size each hash table for 30,000
 * events, and a claim would take three times as long.
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

/** Condition: this process may have events of the media item. */
const isFree = (inputs: Inputs, media: string): string => `(
  ${media} NOT IN (SELECT unnest(${inputs.without})) AND ${media} NOT IN (SELECT media FROM elsewhere)
)`

/** Condition: no process holds the event, and it isn't waiting for a retry. */
const isUnclaimed = (row: string): string => `${row}.due_at IS NULL AND ${row}.id NOT IN (SELECT id FROM taken)`

const isBehind = (schema: string, row: string, condition: string): string => `(
  SELECT 1 FROM ${schema}.event other WHERE other.media = ${row}.media AND other.id < ${row}.id
    AND ${condition} LIMIT 1
) IS NOT NULL`

const isAfter = (schema: string, row: string, condition: string): string =>
  isBehind(schema, row, `${isUnclaimed('other')} AND ${condition}`)

/** Condition of strict order: no earlier event of the media item is retrying, except those this claim takes. */
const isNext = ({ schema, isStrict }: Inputs, row: string): string =>
  isStrict
    ? `NOT ${isBehind(schema, row, 'other.due_at IS NOT NULL AND other.id NOT IN (SELECT id FROM retries)')}`
    : 'true'

const isWaiting = (inputs: Inputs, row: string): string => `${isUnclaimed(row)} AND ${row}.crashes = 0
  AND NOT ${isAfter(inputs.schema, row, 'other.crashes > 0')} AND ${isNext(inputs, row)}`

/** The events a claim examines. A subquery, so Postgres stops reading once it has enough. */
const earliest = ({ schema, fromEvent }: Inputs, where = 'true'): string => `(
  SELECT id, media, due_at, crashes FROM ${schema}.event
  WHERE id >= ${fromEvent} AND ${isCurrent} AND ${where} ORDER BY id LIMIT ${windowSize}
) earliest`

const due = ({ schema, fromDue }: Inputs): string => `(
  SELECT id, media, due_at, received_at, awaits FROM ${schema}.event
  WHERE due_at <= now() AND due_at >= ${fromDue} ORDER BY due_at LIMIT ${windowSize}
) due`

/** Condition: a due event awaits no handlers, awaits one of this process, or is too old to await any. */
const isForThis = ({ schema, owner, ttl }: Inputs): string => `
  (awaits IS NULL OR awaits && ${ownHandlers(schema, owner)} OR received_at <= now() - ${ttl})`

/** Chooses the first events and the first due retries, never an event behind an unclaimed one of its media item. */
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

/** Claims the chosen events. Only retries are written: they must no longer be due. */
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

export interface ClaimFindings {
  /** New low marks, if the claim started at the old ones. `null`: those were stale, and only retries were chosen. */
  readonly low: FoundMarks | null
  readonly transactions: TransactionsSeen
  readonly next: ClaimPosition
  /** True if some events were not examined. */
  readonly hasMore: boolean
  /** Hashes of media items with an earlier event that could not be claimed. */
  readonly blocked: readonly string[]
  /** Time to the next retry (ms). `null` if none is waiting. */
  readonly nextRetryInMs: number | null
}

const isNotClaimed = 'id NOT IN (SELECT id FROM claimed)'

/** Selects what the claim examined. If it reached its limit: up to the last event chosen. */
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
