import type { InboxHost } from '../inbox.ts'
import { deadRecord } from '../operations/dead-letters.ts'
import type { ReplayParsing, Replays } from '../sql/dead-letters.ts'
import { withOwed } from '../sql/inbox.ts'
import { withChanges } from './expectation-changes.ts'
import { hashMedia } from './keys.ts'
import type { Parameter } from './literals.ts'
import type { Tables } from './tables.ts'

/** Turns dead letters back into events. */
export const replays: Replays = {
  maxCommit: 500,
  // Not by Postgres: the JSON may have characters that it can't store as text.
  putBack({ id, dead_letter: text }, deadEvent) {
    const { event, receivedAt, completed, trace } = deadEvent
    const { owed, releases } = JSON.parse(text) as { owed: readonly string[] | null; releases: number }
    return {
      sql: `INSERT INTO $event (id, media, event, received_at, since, completed, failed, trace, owed, releases)
        SELECT event_id, $2, $3, to_timestamp($4::float8 / 1000), now(), ARRAY(SELECT json_array_elements_text($5)), $6, $7,
          $8, $9
        FROM $dead_letter WHERE id = $1 FOR UPDATE`,
      values: [
        id,
        hashMedia(event.mediaId),
        JSON.stringify(event),
        receivedAt.getTime(),
        JSON.stringify(completed),
        JSON.stringify(deadRecord(deadEvent).failedAttempts),
        trace === undefined ? null : JSON.stringify(trace),
        owed && JSON.stringify(owed),
        releases,
      ],
    }
  },
}

/** Replaces unreadable deliveries with their events. */
export const replaceIn =
  (tables: Tables, host: InboxHost): ReplayParsing['replace'] =>
  async (key, parsed) => {
    const { event, receivedAt, owed } = parsed
    const { schema, channel } = tables
    const hash = tables.hashKey(event.key)
    const values = [
      tables.hashKey(key),
      hash,
      `${schema}.event_id`,
      hashMedia(event.mediaId),
      JSON.stringify(event),
      receivedAt.getTime(),
      owed && JSON.stringify(owed),
      channel,
    ]
    const changes = host.expectations?.(parsed)
    const changing =
      changes === undefined ? [] : [{ accepted: parsed, hash, changes: withOwed(changes, host.handlersOf) }]
    const transaction = withChanges(schema, (...parts) => replaceStatement(schema, ...parts), values, changing)
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
  SELECT pg_notify(${value(8)}, 'due') FROM gone`
