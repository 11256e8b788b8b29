import { WebhookError } from '../../errors.ts'

/** The schema of the tables, unless the user names another one. */
export const standardSchema = 'media_webhooks'

/** The first key of every advisory lock of this package. The second one is a hash of the purpose and the schema. */
export const lockClass = 1_835_361_385

/** The maximum id. */
export const largestId = '9223372036854775807'

/** Quotes a name for SQL. */
export const quoted = (name: string): string => `"${name.replaceAll('"', '""')}"`

/** Quotes a text for SQL, whatever `standard_conforming_strings` is. */
export const literal = (text: string): string => {
  const isPlain = !text.includes('\\')
  return `${isPlain ? '' : ' E'}'${text.replaceAll("'", "''").replaceAll('\\', '\\\\')}'`
}

/** Turns settings of Postgres off until the end of the transaction. */
export const turnOff = (...settings: readonly string[]): string =>
  settings.map((name) => `SET LOCAL ${name} = off`).join('; ')

/** The time since the beginning of the transaction, in ms: without that of the network. */
export const tookMs = 'extract(epoch FROM clock_timestamp() - now()) * 1000'

/** The first statement of the SQL that makes the tables. */
export const createSchema = (schema: string): string => `CREATE SCHEMA IF NOT EXISTS ${schema};\n`

/**
 * Makes the tables of a version from those of the version before, as SQL. Processes of the version before use the tables
 * meanwhile and afterwards, in a rolling deploy and after a rollback: a migration that they can't live with also raises
 * `version.version`. `ifNotExists` is `IF NOT EXISTS ` to skip what exists.
 */
export type Migration = (schema: string, ifNotExists: string) => string

// `id` is the order of acceptance, and the same in all tables. Keys are kept much longer than their events, so they have a
// table of their own. Queues change all their rows all the time, so vacuums go by the number of rows.
//
// A transaction of a handler changes no indexed column of `event`, and the free space of the page takes the new version of
// the row: Postgres then reuses the old one without a vacuum. `since` is the time of an event's replay, or of its last
// retry; null since its receipt. `delayed_at` is the time at which `due_at` was set: it is in the future if the clock of
// Postgres was ahead then. `owed` is null if the event had no handler when its unreadable delivery was parsed.
// `releases` counts how often processes gave the event up: see `claimed.ts`. The predicate of `event_of_media` is always
// true, and follows from `media = …` only, so Postgres can't use the index for conditions on `id` alone. It did so if it had
// analyzed the table while a snapshot kept the rows of many handled events: it saw no rows, found both indexes equally good,
// and read the whole index for each event.
//
// Rows of `claim` are replaced and never updated: as long as a snapshot is open, a reader would have to pass the versions
// of an updated row one after another. `owner.running` has the start of the attempts that have been running for long, in
// ms since the epoch, by the id of the event.
//
// `expectation.subject` is the hash of a rule and a media item. `expectation_end` has a row for each subject, which begins
// and ends lock, so that those of two processes see each other. `ended_at` is null until the first end. `began_at` and
// `ended_at` are ms since the epoch: by the sender's clock it can be any time, also one that Postgres does not have.
//
// `pause.handler` is empty for the whole inbox. For `event.awaits`, `owner.handlers` and `removed_handler` see `awaited.ts`.
//
// `version.version` is the oldest version whose processes can use the tables, and `tables` the version of the tables.
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

/** The migrations to version 1, version 2 and so on. The inbox reads and writes the tables of the last one. */
export const migrations: readonly Migration[] = [makeVersion1]

/**
 * Returns the SQL that makes the tables, or updates them.
 * @param schema the quoted name of the schema
 * @param from the version of the existing tables, 0 if there are no tables
 */
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
 * Returns the SQL that makes the tables of `postgresInbox`, or updates them. Use it with your own migration tool: run it in a
 * transaction, as a user with the right to create a schema. It skips what exists.
 * @param schema the schema of the tables, `media_webhooks` by default
 * @throws WebhookError `invalid_option`
 */
export function migrationSql(schema: string = standardSchema): string {
  checkSchemaName('migrationSql', schema)
  const name = quoted(schema)
  return createSchema(name) + migrationsFrom(name, 0, { ifNotExists: 'IF NOT EXISTS ' })
}

/** @throws WebhookError `invalid_option` */
export function checkSchemaName(by: string, schema: unknown): void {
  // Postgres cuts longer names off.
  const isName = typeof schema === 'string' && /^[^\0]+$/.test(schema) && new TextEncoder().encode(schema).length <= 63
  if (!isName) throw new WebhookError('invalid_option', `${by}: schema has to be a name of up to 63 bytes`)
}
