import { deadRecord, type ParsedEvent } from '../operations/dead-letters.ts'
import type { DeadLetter } from '../reading.ts'
import type { DeadEventRow } from './dead-letter-row.ts'
import { hashKey, hashMedia } from './keys.ts'

// The statements that replay dead letters.

/** The payload of the notification that an unreadable delivery has been marked for a replay. */
export const replayMark = 'replay'

/** The tables of dead letters and events, and the channel of the processes that handle them. */
export interface ReplayTables {
  readonly schema: string
  readonly channel: string
  /** Runs a statement in which `$dead_letter` and others are the names of tables. */
  readonly query: <Row>(statement: string, values?: unknown[]) => Promise<Row[]>
}

/** A dead letter, and the id of its row. */
interface Row {
  readonly id: string
  readonly deadLetter: DeadLetter
  readonly owed: readonly string[] | undefined
}

export const isEvent = (row: Row): row is DeadEventRow => row.deadLetter.event !== undefined

/**
 * Puts dead letters back in their places among the events, and returns the ids of the replayed ones. If an event became
 * a dead letter again meanwhile, that one has another id, and stays.
 */
export async function putBack(
  { query, channel }: ReplayTables,
  rows: readonly DeadEventRow[],
): Promise<readonly string[]> {
  if (rows.length === 0) return []
  // Postgres could not read the event from the JSON, which may have characters that Postgres cannot store as text.
  const replayed = await query<{ id: string }>(
    `WITH given AS MATERIALIZED (
       SELECT * FROM unnest($1::bigint[], $2::bigint[], $3::json[], $4::float8[], $5::json[], $6::json[], $7::json[],
         $8::json[]) AS given (id, media, event, received, completed, failed, trace, owed)
     ), gone AS (
       DELETE FROM $dead_letter WHERE id IN (SELECT id FROM given) AND event_id IS NOT NULL RETURNING id, event_id
     ), back AS (
       INSERT INTO $event (id, media, event, received_at, since, completed, failed, trace, owed)
       SELECT event_id, media, event, to_timestamp(received / 1000), now(),
         ARRAY(SELECT json_array_elements_text(completed)), failed, trace, owed
       FROM gone JOIN given USING (id)
     )
     SELECT id::text, (SELECT pg_notify($9, '')) FROM gone`,
    [
      rows.map(({ id }) => id),
      rows.map(({ deadLetter }) => hashMedia(deadLetter.event.mediaId)),
      rows.map(({ deadLetter }) => JSON.stringify(deadLetter.event)),
      rows.map(({ deadLetter }) => deadLetter.receivedAt.getTime()),
      rows.map(({ deadLetter }) => JSON.stringify(deadLetter.completed)),
      rows.map(({ deadLetter }) => JSON.stringify(deadRecord(deadLetter).failedAttempts)),
      rows.map(({ deadLetter: { trace } }) => trace && JSON.stringify(trace)),
      rows.map(({ owed }) => owed && JSON.stringify(owed)),
      channel,
    ],
  )
  return replayed.map(({ id }) => id)
}

/** Marks unreadable deliveries for a replay, and returns the ids of the marked ones. */
export async function mark({ query, channel }: ReplayTables, rows: readonly Row[]): Promise<readonly string[]> {
  if (rows.length === 0) return []
  const marked = await query<{ id: string }>(
    `WITH marked AS (UPDATE $dead_letter SET replay = true WHERE id = ANY ($1::bigint[]) RETURNING id)
     SELECT id::text, (SELECT pg_notify($2, '${replayMark}')) FROM marked`,
    [rows.map(({ id }) => id), channel],
  )
  return marked.map(({ id }) => id)
}

/** Replaces an unreadable delivery by its parsed event, unless that event is known. */
export async function replaceUnreadable(
  { query, schema, channel }: ReplayTables,
  key: string,
  { event, receivedAt, owed }: ParsedEvent,
): Promise<boolean> {
  const rows = await query(
    `WITH gone AS (DELETE FROM $dead_letter WHERE hash = $1 RETURNING 1),
     new AS (
       INSERT INTO $key (hash, id) SELECT $2::uuid, nextval($3) FROM gone ON CONFLICT DO NOTHING RETURNING id
     ), stored AS (
       INSERT INTO $event (id, media, event, received_at, since, owed)
       SELECT id, $4, $5::json, to_timestamp($6::float8 / 1000), now(), $7::json FROM new
     )
     SELECT pg_notify($8, '') FROM gone`,
    [
      hashKey(key),
      hashKey(event.key),
      `${schema}.event_id`,
      hashMedia(event.mediaId),
      JSON.stringify(event),
      receivedAt.getTime(),
      JSON.stringify(owed),
      channel,
    ],
  )
  return rows.length > 0
}
