import { WebhookError } from '../../errors.ts'

/** The schema of the tables, unless the user names another one. */
export const standardSchema = 'media_webhooks'

/** The version of the tables that this version of the package makes. */
export const schemaVersion = 6

/** The first key of every advisory lock of this package. The second one is a hash of the purpose and the schema. */
export const lockClass = 1_835_361_385

/** The maximum id. */
export const largestId = '9223372036854775807'

/** Quotes a name for SQL. */
export const quoted = (name: string): string => `"${name.replaceAll('"', '""')}"`

/** Quotes a text for SQL. */
export const literal = (text: string): string => `'${text.replaceAll("'", "''")}'`

/** Turns settings of Postgres off until the end of the transaction. */
export const turnOff = (...settings: readonly string[]): string =>
  settings.map((name) => `SET LOCAL ${name} = off`).join('; ')

/** The time since the beginning of the transaction, in ms: without that of the network. */
export const tookMs = 'extract(epoch FROM clock_timestamp() - now()) * 1000'

/** The first statement of the SQL that makes the tables. */
export const createSchema = (schema: string): string => `CREATE SCHEMA IF NOT EXISTS ${schema};\n`

// Keys are kept much longer than their events, so they have a table of their own. `id` is the order of acceptance, and
// the same in all tables. A transaction of a handler changes no indexed column, and the free space of the page takes the
// new version of the event: Postgres then reuses the old one without a vacuum. Queues change all their rows all the time,
// so vacuums go by the number of rows.
const makeVersion1 = (schema: string, ifNotExists: string): string => `
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
CREATE INDEX ${ifNotExists}event_due ON ${schema}.event (due_at) WHERE due_at IS NOT NULL;
CREATE INDEX ${ifNotExists}event_suspect ON ${schema}.event (media, id) WHERE crashes > 0;

CREATE TABLE ${ifNotExists}${schema}.owner (
  id uuid PRIMARY KEY,
  expires_at timestamptz NOT NULL,
  suspects integer NOT NULL,
  generation integer NOT NULL DEFAULT 0,
  is_dead boolean NOT NULL DEFAULT false
);

CREATE TABLE ${ifNotExists}${schema}.dead_letter (
  id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  hash uuid NOT NULL UNIQUE,
  event_id bigint UNIQUE,
  dead_letter json NOT NULL,
  body bytea,
  replay boolean NOT NULL DEFAULT false
);
CREATE INDEX ${ifNotExists}dead_letter_replay ON ${schema}.dead_letter (id) WHERE replay;

CREATE TABLE ${ifNotExists}${schema}.version (version integer NOT NULL);
INSERT INTO ${schema}.version SELECT 1 WHERE NOT EXISTS (SELECT FROM ${schema}.version);
`

// Processes of version 1 continue to work, and can be started, since their statements do not name the new columns.
// `version` is the oldest version whose processes can use the tables, and `tables` the version of the tables. The dead
// letters of version 1 get their media item later, since Postgres cannot read it from their JSON. `event` comes last,
// so that it is locked only for a short time.
const makeVersion2 = (schema: string, ifNotExists: string): string => `
CREATE TABLE ${ifNotExists}${schema}.handled (
  id bigint PRIMARY KEY,
  media bigint NOT NULL,
  record json NOT NULL
) WITH (autovacuum_vacuum_scale_factor = 0.02);
CREATE INDEX ${ifNotExists}handled_media ON ${schema}.handled (media, id);

CREATE TABLE ${ifNotExists}${schema}.activity (
  minute timestamptz,
  process uuid,
  numbers json NOT NULL,
  PRIMARY KEY (minute, process)
);

ALTER TABLE ${schema}.dead_letter ADD COLUMN ${ifNotExists}media bigint;
CREATE INDEX ${ifNotExists}dead_letter_media ON ${schema}.dead_letter (media, event_id);
CREATE INDEX ${ifNotExists}dead_letter_old ON ${schema}.dead_letter (id) WHERE media IS NULL AND event_id IS NOT NULL;

ALTER TABLE ${schema}.version ADD COLUMN ${ifNotExists}tables integer;
UPDATE ${schema}.version SET tables = 2 WHERE tables IS NULL;

ALTER TABLE ${schema}.event ADD COLUMN ${ifNotExists}trace json, ADD COLUMN ${ifNotExists}failed json;

${giveSameRights(schema, ['handled', 'activity'])};
`

// Processes of the earlier versions continue to work. They record no owed handlers, and publish neither their handlers
// nor their claims. Rows of `claim` are replaced and never updated: as long as a snapshot is open, a reader would have
// to pass the versions of an updated row one after another. `since` is the time of the replay of an event, or of its
// last retry. It is null if the event waits since its receipt.
const makeVersion3 = (schema: string, ifNotExists: string): string => `
CREATE TABLE ${ifNotExists}${schema}.claim (
  id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  owner uuid NOT NULL,
  events bigint[] NOT NULL
) WITH (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 1000, autovacuum_vacuum_cost_delay = 0);

ALTER TABLE ${schema}.owner ADD COLUMN ${ifNotExists}handlers json;

UPDATE ${schema}.version SET tables = 3 WHERE tables < 3;

ALTER TABLE ${schema}.event ADD COLUMN ${ifNotExists}owed json, ADD COLUMN ${ifNotExists}since timestamptz;

${giveSameRights(schema, ['claim'])};
`

// Processes of the earlier versions continue to work, and know no expectations: the events that they accept neither begin
// nor end one. `subject` is the hash of a rule and a media item. `expectation_end` has a row for each subject, which
// begins and ends lock, so that those of two processes see each other. `ended_at` is null until the first end. `began_at`
// and `ended_at` are ms since the epoch: by the sender's clock it can be any time, also one that Postgres does not have.
const makeVersion4 = (schema: string, ifNotExists: string): string => `
CREATE TABLE ${ifNotExists}${schema}.expectation (
  hash uuid PRIMARY KEY,
  subject uuid NOT NULL,
  media bigint NOT NULL,
  rule json NOT NULL,
  began_at bigint NOT NULL,
  due_at timestamptz NOT NULL,
  event json NOT NULL,
  trace json,
  owed json NOT NULL
) WITH (autovacuum_vacuum_scale_factor = 0.02);
CREATE INDEX ${ifNotExists}expectation_subject ON ${schema}.expectation (subject);
CREATE INDEX ${ifNotExists}expectation_due ON ${schema}.expectation (due_at);

CREATE TABLE ${ifNotExists}${schema}.expectation_end (
  subject uuid PRIMARY KEY,
  ended_at bigint,
  accepted_at timestamptz NOT NULL DEFAULT now()
) WITH (autovacuum_vacuum_scale_factor = 0.02);
CREATE INDEX ${ifNotExists}expectation_end_accepted_at ON ${schema}.expectation_end (accepted_at);

UPDATE ${schema}.version SET tables = 4 WHERE tables < 4;

${giveSameRights(schema, ['expectation', 'expectation_end'])};
`

// The index of the events by media item has a predicate that is always true, and that follows from `media = …` only. So
// Postgres cannot use it for conditions on `id` alone. It did so if it had analyzed the table while a snapshot kept the
// rows of many handled events: it saw no rows, found both indexes equally good, and read the whole index for each event.
// Tables that an earlier release made have the index `event_media` instead.
const makeVersion5 = (schema: string, ifNotExists: string): string => `
CREATE INDEX ${ifNotExists}event_of_media ON ${schema}.event (media, id) WHERE media IS NOT NULL;
DROP INDEX IF EXISTS ${schema}.event_media;

UPDATE ${schema}.version SET tables = 5 WHERE tables < 5;
`

// Processes of the earlier versions continue to work, and obey no pause. `handler` is empty for the whole inbox.
// `releases` is the number of times that an event was released, and `claim.releases` that of each of its events when they
// were claimed. The earlier processes have no `owner.version`, and set `event.owner`. `running` has the start of the attempts
// that have been running for long, in ms since the epoch, by the id of the event.
const makeVersion6 = (schema: string, ifNotExists: string): string => `
CREATE TABLE ${ifNotExists}${schema}.pause (
  handler text PRIMARY KEY,
  since timestamptz NOT NULL,
  paused_by text
);

ALTER TABLE ${schema}.claim ADD COLUMN ${ifNotExists}releases integer[];
ALTER TABLE ${schema}.owner
  ADD COLUMN ${ifNotExists}version integer, ADD COLUMN ${ifNotExists}process text, ADD COLUMN ${ifNotExists}running json;

UPDATE ${schema}.version SET tables = 6 WHERE tables < 6;

ALTER TABLE ${schema}.event ADD COLUMN ${ifNotExists}releases integer NOT NULL DEFAULT 0;

${giveSameRights(schema, ['pause'])};
`

/** Gives the new tables the owner and the rights of the table of events. The user may have granted rights to others. */
const giveSameRights = (schema: string, names: readonly string[]): string =>
  `DO ${literal(`
DECLARE
  name regclass;
  granted record;
BEGIN
  FOREACH name IN ARRAY ARRAY[${names.map((name) => literal(`${schema}.${name}`))}]::regclass[] LOOP
    FOR granted IN
      SELECT relowner, grantee, privilege_type
      FROM pg_class LEFT JOIN aclexplode(relacl) ON grantee <> relowner WHERE oid = ${literal(`${schema}.event`)}::regclass
    LOOP
      IF granted.relowner <> (SELECT relowner FROM pg_class WHERE oid = name) THEN
        EXECUTE format('ALTER TABLE %s OWNER TO %s', name, granted.relowner::regrole);
      END IF;
      IF granted.grantee IS NOT NULL THEN
        EXECUTE format('GRANT %s ON %s TO %s', granted.privilege_type, name,
          CASE granted.grantee WHEN 0 THEN 'PUBLIC' ELSE granted.grantee::regrole::text END);
      END IF;
    END LOOP;
  END LOOP;
END`)}`

const makeVersions = [makeVersion1, makeVersion2, makeVersion3, makeVersion4, makeVersion5, makeVersion6] as const

/**
 * Returns the SQL that makes the tables, or updates them.
 * @param schema the quoted name of the schema
 * @param version the version of the existing tables, 0 if there are no tables
 * @param ifNotExists `IF NOT EXISTS ` to skip what exists
 */
export const tables = (schema: string, version: number, ifNotExists = ''): string =>
  makeVersions
    .slice(version)
    .map((make) => make(schema, ifNotExists))
    .join('')

/**
 * Returns the SQL that makes the tables of `postgresInbox`, or updates those of an earlier version. Use it with your
 * own migration tool: run it in a transaction, as a user with the right to create a schema. It skips what exists.
 * @param schema the schema of the tables, `media_webhooks` by default
 * @throws WebhookError `invalid_option`
 */
export function migrationSql(schema: string = standardSchema): string {
  checkSchemaName('migrationSql', schema)
  const name = quoted(schema)
  return createSchema(name) + tables(name, 0, 'IF NOT EXISTS ')
}

/** @throws WebhookError `invalid_option` */
export function checkSchemaName(by: string, schema: unknown): void {
  // Postgres cuts longer names off.
  const isName = typeof schema === 'string' && /^[^\0]+$/.test(schema) && new TextEncoder().encode(schema).length <= 63
  if (!isName) throw new WebhookError('invalid_option', `${by}: schema has to be a name of up to 63 bytes`)
}
