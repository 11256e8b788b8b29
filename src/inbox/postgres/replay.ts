import { deadRecord, type ParsedEvent } from '../operations/dead-letters.ts'
import type { DeadEvent } from '../reading.ts'
import type { Parameter, Tables } from './database.ts'
import { type DeadLetterRow, forReplay, toDeadLetter } from './dead-letter-row.ts'
import { type Effects, withEffects } from './effects.ts'
import { hashKey, hashMedia } from './keys.ts'

// The statements that replay dead letters.

/** The payload of the notification that an unreadable delivery has been marked for a replay. */
export const replayMark = 'replay'

/**
 * Puts dead letters back in their places among the events, and returns the keys of the replayed ones. If an event became
 * a dead letter again meanwhile, that one has another id, and stays.
 */
export async function putBack(tables: Tables, rows: readonly DeadLetterRow[]): Promise<readonly string[]> {
  if (rows.length === 0) return []
  const events = rows.map((row) => toDeadLetter(row) as DeadEvent)
  const stored = rows.map(forReplay)
  // Postgres could not read the event from the JSON, which may have characters that Postgres cannot store as text.
  const replayed = await tables.ask<{ id: string }>(
    `WITH given AS MATERIALIZED (
       SELECT * FROM unnest($1::bigint[], $2::bigint[], $3::json[], $4::float8[], $5::json[], $6::json[], $7::json[],
         $8::json[], $9::integer[]) AS given (id, media, event, received, completed, failed, trace, owed, releases)
     ), gone AS (
       DELETE FROM $dead_letter WHERE id IN (SELECT id FROM given) AND event_id IS NOT NULL RETURNING id, event_id
     ), back AS (
       INSERT INTO $event (id, media, event, received_at, since, completed, failed, trace, owed, releases)
       SELECT event_id, media, event, to_timestamp(received / 1000), now(),
         ARRAY(SELECT json_array_elements_text(completed)), failed, trace, owed, releases
       FROM gone JOIN given USING (id)
     )
     SELECT id::text, (SELECT pg_notify($10, '')) FROM gone`,
    [
      rows.map(({ place }) => place),
      events.map(({ event }) => hashMedia(event.mediaId)),
      events.map(({ event }) => JSON.stringify(event)),
      events.map(({ receivedAt }) => receivedAt.getTime()),
      events.map(({ completed }) => JSON.stringify(completed)),
      events.map((deadEvent) => JSON.stringify(deadRecord(deadEvent).failedAttempts)),
      events.map(({ trace }) => trace && JSON.stringify(trace)),
      stored.map(({ owed }) => owed && JSON.stringify(owed)),
      stored.map(({ releases }) => releases),
      tables.channel,
    ],
  )
  return keysOf(rows, replayed)
}

/** Marks unreadable deliveries for a process that can parse them, and returns the keys of the marked ones. */
export async function mark(tables: Tables, rows: readonly DeadLetterRow[]): Promise<readonly string[]> {
  if (rows.length === 0) return []
  const marked = await tables.ask<{ id: string }>(
    `WITH marked AS (UPDATE $dead_letter SET replay = true WHERE id = ANY ($1::bigint[]) RETURNING id)
     SELECT id::text, (SELECT pg_notify($2, '${replayMark}')) FROM marked`,
    [rows.map(({ place }) => place), tables.channel],
  )
  return keysOf(rows, marked)
}

function keysOf(rows: readonly DeadLetterRow[], found: readonly { readonly id: string }[]): readonly string[] {
  const ids = new Set(found.map(({ id }) => id))
  return rows.filter(({ place }) => ids.has(place)).map((row) => toDeadLetter(row).key)
}

/** Replaces an unreadable delivery by its parsed event, unless that event is known. */
export async function replaceUnreadable(
  tables: Tables,
  key: string,
  parsed: ParsedEvent,
  effects: Effects | undefined,
): Promise<boolean> {
  const { event, receivedAt, owed } = parsed
  const { schema, channel } = tables
  const hash = hashKey(event.key)
  const values = [
    hashKey(key),
    hash,
    `${schema}.event_id`,
    hashMedia(event.mediaId),
    JSON.stringify(event),
    receivedAt.getTime(),
    JSON.stringify(owed),
    channel,
  ]
  const effective = effects === undefined ? [] : [{ accepted: parsed, hash, effects }]
  const transaction = withEffects(schema, (...parts) => replaceStatement(schema, ...parts), values, effective)
  const [, rows = []] = await tables.askAll(transaction)
  return rows.length > 0
}

const replaceStatement = (schema: string, value: Parameter, parts: string): string => `
  WITH gone AS (DELETE FROM ${schema}.dead_letter WHERE hash = ${value(1)} RETURNING 1),
  new AS (
    INSERT INTO ${schema}.key (hash, id) SELECT ${value(2)}::uuid, nextval(${value(3)}) FROM gone ON CONFLICT DO NOTHING RETURNING id, hash
  ), stored AS (
    INSERT INTO ${schema}.event (id, media, event, received_at, since, owed)
    SELECT id, ${value(4)}, ${value(5)}::json, to_timestamp(${value(6)}::float8 / 1000), now(), ${value(7)}::json FROM new
  )${parts}
  SELECT pg_notify(${value(8)}, '') FROM gone`
