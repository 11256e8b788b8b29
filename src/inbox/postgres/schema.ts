import { WebhookError } from '../../errors.ts'

/** The schema of the tables, unless the user names another one. */
export const standardSchema = 'media_webhooks'

/** The version of the tables. It rises with every migration. */
export const schemaVersion = 1

/** The first key of every advisory lock of this package. The second one is a hash of the purpose and the schema. */
export const lockClass = 1_835_361_385

/** Quotes a name for SQL. */
export const quoted = (name: string): string => `"${name.replaceAll('"', '""')}"`

/** Quotes a text for SQL. */
export const literal = (text: string): string => `'${text.replaceAll("'", "''")}'`

/** The first statement of {@link tables}. */
export const createSchema = (schema: string): string => `CREATE SCHEMA IF NOT EXISTS ${schema};\n`

// Keys outlive their events by far, so they have a table of their own. `id` is the order of acceptance, and the same in
// both. Claiming an event changes no indexed column, and the free space of its page takes the new version: Postgres then
// reuses the old one without a vacuum. Queues change all their rows all the time, so vacuums go by the number of rows.
export const tables = (schema: string): string => `
${createSchema(schema)}
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
INSERT INTO ${schema}.version VALUES (${schemaVersion});
`

/**
 * Returns the SQL that makes the tables of `postgresInbox`, for those who migrate with a tool of their own. Run it once, in
 * a transaction, as a user who may create a schema.
 * @param schema the schema of the tables, `media_webhooks` by default
 * @throws WebhookError `invalid_option`
 */
export function migrationSql(schema: string = standardSchema): string {
  checkSchemaName('migrationSql', schema)
  return tables(quoted(schema)).trimStart()
}

/** @throws WebhookError `invalid_option` */
export function checkSchemaName(by: string, schema: unknown): void {
  // Postgres cuts longer names off.
  const isName = typeof schema === 'string' && /^[^\0]+$/.test(schema) && new TextEncoder().encode(schema).length <= 63
  if (!isName) throw new WebhookError('invalid_option', `${by}: schema has to be a name of up to 63 bytes`)
}
