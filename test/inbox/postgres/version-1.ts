import { hashKey, hashMedia } from '../../../src/inbox/postgres/keys.ts'
import { eventOf } from '../../support/inbox.ts'

/** The tables as version 1 made them. */
export const version1 = (schema: string): string => `CREATE SCHEMA ${schema};
CREATE SEQUENCE ${schema}.event_id;

CREATE TABLE ${schema}.key (
  hash uuid PRIMARY KEY,
  id bigint NOT NULL,
  accepted_at timestamptz NOT NULL DEFAULT now()
) WITH (autovacuum_vacuum_scale_factor = 0.02);
CREATE INDEX key_accepted_at ON ${schema}.key (accepted_at);

CREATE TABLE ${schema}.event (
  id bigint PRIMARY KEY,
  media bigint NOT NULL,
  event json NOT NULL,
  received_at timestamptz NOT NULL,
  attempts integer NOT NULL DEFAULT 0,
  completed text[] NOT NULL DEFAULT '{}',
  due_at timestamptz,
  owner uuid,
  crashes integer NOT NULL DEFAULT 0
) WITH (
  fillfactor = 60,
  autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 10000, autovacuum_vacuum_cost_delay = 0,
  autovacuum_analyze_scale_factor = 0.1
);
CREATE INDEX event_media ON ${schema}.event (media, id);
CREATE INDEX event_due ON ${schema}.event (due_at) WHERE due_at IS NOT NULL;
CREATE INDEX event_suspect ON ${schema}.event (media, id) WHERE crashes > 0;

CREATE TABLE ${schema}.owner (
  id uuid PRIMARY KEY,
  expires_at timestamptz NOT NULL,
  suspects integer NOT NULL,
  generation integer NOT NULL DEFAULT 0,
  is_dead boolean NOT NULL DEFAULT false
);

CREATE TABLE ${schema}.dead_letter (
  id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  hash uuid NOT NULL UNIQUE,
  event_id bigint UNIQUE,
  dead_letter json NOT NULL,
  body bytea,
  replay boolean NOT NULL DEFAULT false
);
CREATE INDEX dead_letter_replay ON ${schema}.dead_letter (id) WHERE replay;

CREATE TABLE ${schema}.version (version integer NOT NULL);
INSERT INTO ${schema}.version VALUES (1);
`

type Query = (sql: string, values?: unknown[]) => Promise<object[]>

/** Writes rows with the statements of version 1, which name no newer column. */
export function version1Rows(query: Query, schema: string) {
  const newKey = async (key: string): Promise<string> => {
    const [row] = await query(
      `INSERT INTO ${schema}.key (hash, id) VALUES ($1, nextval('${schema}.event_id')) RETURNING id::text`,
      [hashKey(key)],
    )
    return (row as { id: string }).id
  }
  return {
    async event(key: string, mediaId: string, { attempts = 0, dueInMs }: { attempts?: number; dueInMs?: number } = {}) {
      const { event, receivedAt } = eventOf(key, mediaId)
      await query(
        `INSERT INTO ${schema}.event (id, media, event, received_at, attempts, due_at)
         VALUES ($1, $2, $3, $4, $5, now() + $6::float8 * interval '1 ms')`,
        [await newKey(key), hashMedia(mediaId), JSON.stringify(event), receivedAt, attempts, dueInMs],
      )
    },
    async deadLetter(key: string, mediaId: string) {
      const { event, receivedAt } = eventOf(key, mediaId)
      const failures = [{ handler: 'handle', message: 'Error: no' }]
      const end = { key, attempts: 5, failures, diedAt: new Date() }
      await query(`INSERT INTO ${schema}.dead_letter (hash, event_id, dead_letter) VALUES ($1, $2, $3)`, [
        hashKey(key),
        await newKey(key),
        JSON.stringify({ event, completed: [], receivedAt: receivedAt.getTime(), end }),
      ])
    },
    /** Makes an event that was handled: its key is all that is left. */
    handled: newKey,
  }
}
