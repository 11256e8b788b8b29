import { WebhookError } from '../../errors.ts'

/** Default schema of the tables. */
export const standardSchema = 'media_webhooks'

/** First key of all our advisory locks. The second hashes purpose and schema. */
export const lockClass = 1_835_361_385

export const largestId = '9223372036854775807'

export const quoted = (name: string): string => `"${name.replaceAll('"', '""')}"`

/** Quotes a text, whatever `standard_conforming_strings` is. */
export const literal = (text: string): string => {
  const isPlain = !text.includes('\\')
  return `${isPlain ? '' : ' E'}'${text.replaceAll("'", "''").replaceAll('\\', '\\\\')}'`
}

/** Turns settings off until the end of the transaction. */
export const turnOff = (...settings: readonly string[]): string =>
  settings.map((name) => `SET LOCAL ${name} = off`).join('; ')

/** Time since the start of the transaction, without the network (ms). */
export const tookMs = 'extract(epoch FROM clock_timestamp() - now()) * 1000'

export const createSchema = (schema: string): string => `CREATE SCHEMA IF NOT EXISTS ${schema};\n`

/**
 * SQL that brings the tables from the previous version to this one. Processes of the previous version keep using them,
 * in a rolling deploy and after a rollback. A migration they can't live with must raise `version.version`.
 * `ifNotExists` is `IF NOT EXISTS ` to skip what exists.
 */
export type Migration = (schema: string, ifNotExists: string) => string

// `id` is the order of acceptance, and the same in all tables. Keys outlive their events, so they have a table to
// themselves. Queue tables change all their rows all the time, so vacuums go by the number of rows.
//
// `event`: a handler's transaction changes no indexed column, and `fillfactor` keeps room for the new row version on
// the same page, so Postgres reuses the old one without a vacuum. `since`: last replay or retry; null since receipt.
// `delayed_at`: when `due_at` was set; in the future if Postgres' clock was ahead. `owed`: null if there was no handler
// when an unreadable delivery was parsed. `releases`: see `claimed.ts`. The predicate of `event_of_media` is always
// true, but implied only by `media = …`: after an ANALYZE under an open snapshot, Postgres used the index for
// conditions on `id` alone, and read all of it for each event.
//
// `claim`: rows are replaced, never updated. Under an open snapshot, readers would pass each version of an updated row.
// `owner.running`: starts of attempts that run for long (ms since the epoch), by event id.
//
// `expectation.subject`: hash of a rule and a media item. `expectation_end`: a row per subject, which begins and ends
// lock, so that concurrent ones see each other. `ended_at`: null until the first end. Like `began_at`, in ms since the
// epoch: a sender's clock may show times Postgres doesn't have.
//
// `pause.handler`: empty for the whole inbox. `awaits`, `handlers`, `removed_handler`: see `awaited.ts`.
// `version.version`: oldest version whose processes can use the tables; `version.tables`: their current version.
const makeVersion1: Migration = (schema, ifNotExists) => `
CREATE SEQUENCE ${ifNotExists}${schema}.event_id;

CREATE TABLE ${ifNotExists}${schema}.key (
  hash uuid PRIMARY KEY,
  id bigint NOT NULL,
  accepted_at timestamptz NOT NULL DEFAULT now()
) WITH (autovacuum_vacuum_scale_factor = 0.02);
CREATE INDEX ${ifNotExists}key_accepted_at ON ${schema}.key (accepted_at);

CREATE TABLE ${ifNotExists}${schema}.event (
  id bigint PRIMARY KEY,
  media bigint NOT NULL,
  received_at timestamptz NOT NULL,
  since timestamptz,
  due_at timestamptz,
  delayed_at timestamptz,
  crashes integer NOT NULL DEFAULT 0,
  releases integer NOT NULL DEFAULT 0,
  attempts integer NOT NULL DEFAULT 0,
  completed text[] NOT NULL DEFAULT '{}',
  awaits text[],
  owed json,
  event json NOT NULL,
  trace json,
  failed json
) WITH (
  fillfactor = 60,
  autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 10000, autovacuum_vacuum_cost_delay = 0,
  autovacuum_analyze_scale_factor = 0.1
);
CREATE INDEX ${ifNotExists}event_of_media ON ${schema}.event (media, id) WHERE media IS NOT NULL;
CREATE INDEX ${ifNotExists}event_due ON ${schema}.event (due_at) WHERE due_at IS NOT NULL;
CREATE INDEX ${ifNotExists}event_due_of_media ON ${schema}.event (media, id) WHERE due_at IS NOT NULL;
CREATE INDEX ${ifNotExists}event_delayed ON ${schema}.event (delayed_at) WHERE due_at IS NOT NULL;
CREATE INDEX ${ifNotExists}event_awaits ON ${schema}.event USING gin (awaits) WITH (fastupdate = off) WHERE awaits IS NOT NULL;
CREATE INDEX ${ifNotExists}event_suspect ON ${schema}.event (media, id) WHERE crashes > 0;

CREATE TABLE ${ifNotExists}${schema}.claim (
  id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  owner uuid NOT NULL,
  events bigint[] NOT NULL DEFAULT '{}',
  releases integer[] NOT NULL DEFAULT '{}'
) WITH (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 1000, autovacuum_vacuum_cost_delay = 0);

CREATE TABLE ${ifNotExists}${schema}.owner (
  id uuid PRIMARY KEY,
  expires_at timestamptz NOT NULL,
  lease_ms float8 NOT NULL,
  suspects integer NOT NULL,
  generation integer NOT NULL DEFAULT 0,
  is_dead boolean NOT NULL DEFAULT false,
  process text,
  handlers text[] NOT NULL,
  running json
);

CREATE TABLE ${ifNotExists}${schema}.removed_handler (
  name text PRIMARY KEY,
  removed_at timestamptz NOT NULL DEFAULT now()
);

CREATE TABLE ${ifNotExists}${schema}.handled (
  id bigint PRIMARY KEY,
  media bigint NOT NULL,
  record json NOT NULL
) WITH (autovacuum_vacuum_scale_factor = 0.02);
CREATE INDEX ${ifNotExists}handled_media ON ${schema}.handled (media, id);

CREATE TABLE ${ifNotExists}${schema}.dead_letter (
  id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  hash uuid NOT NULL UNIQUE,
  event_id bigint UNIQUE,
  media bigint,
  dead_letter json NOT NULL,
  body bytea,
  replay boolean NOT NULL DEFAULT false
);
CREATE INDEX ${ifNotExists}dead_letter_media ON ${schema}.dead_letter (media, event_id);
CREATE INDEX ${ifNotExists}dead_letter_replay ON ${schema}.dead_letter (id) WHERE replay;

CREATE TABLE ${ifNotExists}${schema}.expectation (
  hash uuid PRIMARY KEY,
  subject uuid NOT NULL,
  media bigint NOT NULL,
  rule json NOT NULL,
  began_at bigint NOT NULL,
  due_at timestamptz NOT NULL,
  event json NOT NULL,
  trace json,
  owed json NOT NULL,
  delayed_at timestamptz NOT NULL DEFAULT clock_timestamp()
) WITH (autovacuum_vacuum_scale_factor = 0.02);
CREATE INDEX ${ifNotExists}expectation_subject ON ${schema}.expectation (subject);
CREATE INDEX ${ifNotExists}expectation_due ON ${schema}.expectation (due_at);
CREATE INDEX ${ifNotExists}expectation_delayed ON ${schema}.expectation (delayed_at);

CREATE TABLE ${ifNotExists}${schema}.expectation_end (
  subject uuid PRIMARY KEY,
  ended_at bigint,
  accepted_at timestamptz NOT NULL DEFAULT now()
) WITH (autovacuum_vacuum_scale_factor = 0.02);
CREATE INDEX ${ifNotExists}expectation_end_accepted_at ON ${schema}.expectation_end (accepted_at);

CREATE TABLE ${ifNotExists}${schema}.pause (
  handler text PRIMARY KEY,
  since bigint NOT NULL,
  paused_by text
);

CREATE TABLE ${ifNotExists}${schema}.operation (
  id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  operation text NOT NULL,
  events text NOT NULL
);

CREATE TABLE ${ifNotExists}${schema}.activity (
  minute bigint,
  process uuid,
  numbers json NOT NULL,
  PRIMARY KEY (minute, process)
);

CREATE TABLE ${ifNotExists}${schema}.version (version integer PRIMARY KEY, tables integer NOT NULL);
INSERT INTO ${schema}.version SELECT 1, 0 WHERE NOT EXISTS (SELECT FROM ${schema}.version);
`

/** The n-th migrates to version n. The inbox uses the last one. */
export const migrations: readonly Migration[] = [makeVersion1]

/** Returns the SQL that makes or updates the tables. `schema` is quoted; `from` is their version, or 0. */
export const migrationsFrom = (
  schema: string,
  from: number,
  { all = migrations, ifNotExists = '' }: { all?: readonly Migration[]; ifNotExists?: 'IF NOT EXISTS ' | '' } = {},
): string =>
  all
    .map((migrate, index) => {
      const version = index + 1
      return `${migrate(schema, ifNotExists)}UPDATE ${schema}.version SET tables = ${version} WHERE tables < ${version};\n`
    })
    .slice(from)
    .join('')

/**
 * Returns the SQL that makes or updates the tables of `postgresInbox`, for your own migration tool. Run it in a
 * transaction, as a user who may create a schema. It skips what exists.
 * @param schema `media_webhooks` by default
 * @throws WebhookError `invalid_option`
 */
export function migrationSql(schema: string = standardSchema): string {
  checkSchemaName('migrationSql', schema)
  const name = quoted(schema)
  return createSchema(name) + migrationsFrom(name, 0, { ifNotExists: 'IF NOT EXISTS ' })
}

/** @throws WebhookError `invalid_option` */
export function checkSchemaName(by: string, schema: unknown): void {
  // Postgres truncates longer names.
  const isName = typeof schema === 'string' && /^[^\0]+$/.test(schema) && new TextEncoder().encode(schema).length <= 63
  if (!isName) throw new WebhookError('invalid_option', `${by}: schema must be a name of 1 to 63 bytes`)
}
