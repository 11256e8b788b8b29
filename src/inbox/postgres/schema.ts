import type { PoolClient } from 'pg'
import { WebhookError } from '../../errors.ts'

/** The version of the tables. It rises with every migration. */
export const schemaVersion = 1

/** The first key of every advisory lock of this package. The second one is a hash of the purpose and the schema. */
export const lockClass = 1_835_361_385

/** Quotes a name for SQL. */
export const quoted = (name: string): string => `"${name.replaceAll('"', '""')}"`

// Keys outlive their events by far, so they have a table of their own. `id` is the order of acceptance, and the same in
// both. Claiming an event changes no indexed column, and the free space of its page takes the new version: Postgres then
// reuses the old one without a vacuum. Queues change all their rows all the time, so vacuums go by the number of rows.
const tables = (schema: string): string => `
CREATE SCHEMA IF NOT EXISTS ${schema};

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
CREATE INDEX event_suspect ON ${schema}.event (crashes, id) WHERE crashes > 0;

CREATE TABLE ${schema}.owner (
  id uuid PRIMARY KEY,
  expires_at timestamptz NOT NULL,
  suspects integer NOT NULL,
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
INSERT INTO ${schema}.version VALUES (${schemaVersion});
`

/** Returns the SQL that makes the tables, for those who migrate with a tool of their own. */
export const migrationSql = (schema: string): string => tables(quoted(schema)).trimStart()

interface Condition {
  /** `null` when there are no tables. */
  readonly version: number | null
  readonly server: number
  readonly encoding: string
  readonly isReplica: boolean
  readonly isReadOnly: boolean
}

/**
 * Makes the tables if there are none, and checks that the inbox can use them.
 * @throws WebhookError `unavailable`
 */
export async function prepareSchema(client: Pick<PoolClient, 'query'>, schema: string): Promise<void> {
  const { version, server, encoding, isReplica, isReadOnly } = await readCondition(client, schema)
  if (server < 130_000) throw unusable('it is older than Postgres 13')
  if (isReplica) throw unusable('it is a read-only replica: give the address of the primary')
  if (isReadOnly) throw unusable('its transactions are read-only (default_transaction_read_only)')
  if (encoding !== 'UTF8') throw unusable(`its encoding is ${encoding}: create one with ENCODING 'UTF8'`)
  if (version === null) await makeTables(client, schema)
  else if (version > schemaVersion) throw unusable(`a newer version of media-webhooks made the schema ${schema}`)
  await checkRights(client, schema)
}

async function readCondition(client: Pick<PoolClient, 'query'>, schema: string): Promise<Condition> {
  const { rows } = await client.query(
    `SELECT json_build_object(
       'server', current_setting('server_version_num')::int,
       'encoding', current_setting('server_encoding'),
       'isReplica', pg_is_in_recovery(),
       'isReadOnly', current_setting('transaction_read_only') = 'on',
       'hasTables', EXISTS (SELECT FROM pg_class JOIN pg_namespace n ON n.oid = relnamespace
                            WHERE nspname = $1 AND relname = 'version')
     )::text AS condition`,
    [schema],
  )
  const { hasTables, ...condition } = JSON.parse(rows[0].condition)
  if (!hasTables) return { ...condition, version: null }
  try {
    const version = await client.query(`SELECT max(version)::text AS version FROM ${quoted(schema)}.version`)
    return { ...condition, version: Number(version.rows[0].version) }
  } catch (error) {
    throw isRightMissing(error) ? missingRight(schema, error) : error
  }
}

/** Makes the tables under a lock: several processes may start at a time. */
export async function makeTables(client: Pick<PoolClient, 'query'>, schema: string): Promise<void> {
  const lock = `SELECT pg_advisory_xact_lock(${lockClass}, hashtext($1))`
  await client.query('BEGIN')
  try {
    await client.query(lock, [`migrate ${schema}`])
    const { rows } = await client.query('SELECT to_regclass($1) IS NOT NULL AS made', [`${quoted(schema)}.version`])
    if (!rows[0].made) await client.query(migrationSql(schema))
    await client.query('COMMIT')
  } catch (error) {
    await client.query('ROLLBACK').catch(() => {})
    if (!isRightMissing(error)) throw error
    const fix = `grant CREATE on the database, or run the SQL that "media-webhooks inbox <url> migrate --print" prints`
    throw unusable(`this user may not make the schema ${schema}: ${fix}`, error)
  }
}

async function checkRights(client: Pick<PoolClient, 'query'>, schema: string): Promise<void> {
  const { rows } = await client.query(
    `SELECT relname FROM pg_class JOIN pg_namespace n ON n.oid = relnamespace
     WHERE nspname = $1 AND relkind = 'r' AND relname = ANY ($2)
       AND NOT (has_schema_privilege(n.oid, 'USAGE') AND has_table_privilege(pg_class.oid, 'SELECT')
         AND has_table_privilege(pg_class.oid, 'INSERT') AND has_table_privilege(pg_class.oid, 'UPDATE')
         AND has_table_privilege(pg_class.oid, 'DELETE'))`,
    [schema, ['key', 'event', 'owner', 'dead_letter']],
  )
  if (rows.length > 0) throw missingRight(schema)
}

const isRightMissing = (error: unknown): boolean => (error as { code?: unknown }).code === '42501'

const missingRight = (schema: string, cause?: unknown): WebhookError =>
  unusable(`this user may not read and write the tables of the schema ${schema}: grant it all rights on them`, cause)

const unusable = (problem: string, cause?: unknown): WebhookError =>
  new WebhookError('unavailable', `the Postgres database cannot be used: ${problem}`, { cause })
