import type { PoolClient } from 'pg'
import { WebhookError } from '../../errors.ts'
import { createSchema, lockClass, quoted, schemaVersion, tables } from './schema.ts'

type Client = Pick<PoolClient, 'query'>

interface Condition {
  /** `undefined` when there are no tables. */
  readonly version: number | undefined
  readonly server: number
  readonly encoding: string
  readonly isReplica: boolean
  readonly isReadOnly: boolean
}

/**
 * Makes the tables if there are none, and checks that the inbox can use them. Resolves with `true` if it made them.
 * @throws WebhookError `unavailable`
 */
export async function prepareSchema(client: Client, schema: string): Promise<boolean> {
  const { version, server, encoding, isReplica, isReadOnly } = await readCondition(client, schema)
  if (server < 130_000) throw unusable('it is older than Postgres 13')
  if (isReplica) throw unusable('it is a read-only replica: give the address of the primary')
  if (isReadOnly) throw unusable('its transactions are read-only (default_transaction_read_only)')
  if (encoding !== 'UTF8') throw unusable(`its encoding is ${encoding}: create one with ENCODING 'UTF8'`)
  const isMade = version === undefined && (await makeTables(client, schema))
  await checkRights(client, schema)
  return isMade
}

/**
 * Checks that there are tables which this version can read. It makes none.
 * @throws WebhookError `unavailable`
 */
export async function checkTables(client: Client, schema: string): Promise<void> {
  const { version } = await readCondition(client, schema)
  if (version !== undefined) return
  const fix = 'start a receiver with postgresInbox, run "media-webhooks inbox <url> migrate", or give the right schema'
  throw unusable(`it has no tables of an inbox in the schema ${schema}: ${fix}`)
}

async function readCondition(client: Client, schema: string): Promise<Condition> {
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
  return { ...condition, version: hasTables ? await readVersion(client, schema) : undefined }
}

async function readVersion(client: Client, schema: string): Promise<number> {
  const result = await client
    .query(`SELECT max(version)::text AS version FROM ${quoted(schema)}.version`)
    .catch((error) => {
      if (isRightMissing(error)) throw missingRight(schema, error)
      throw isWrongSql(error) ? notOurs(schema, error) : error
    })
  const version = Number(result.rows[0].version ?? Number.NaN)
  if (!Number.isInteger(version)) throw notOurs(schema)
  if (version > schemaVersion) throw unusable(`a newer version of media-webhooks made the schema ${schema}`)
  return version
}

/** Makes the tables under a lock: several processes may start at a time. `false`: another one has made them meanwhile. */
async function makeTables(client: Client, schema: string): Promise<boolean> {
  const name = quoted(schema)
  await client.query('BEGIN ISOLATION LEVEL READ COMMITTED')
  try {
    await client.query(`SELECT pg_advisory_xact_lock(${lockClass}, hashtext($1))`, [`migrate ${schema}`])
    const { rows } = await client.query(
      `SELECT (to_regnamespace($1) IS NOT NULL)::text AS "hasSchema", (to_regclass($2) IS NOT NULL)::text AS "hasTables"`,
      [name, `${name}.version`],
    )
    const { hasSchema, hasTables } = rows[0]
    // Postgres asks for the right to create schemas even if this one exists.
    if (hasTables === 'false')
      await client.query(hasSchema === 'true' ? tables(name).replace(createSchema(name), '') : tables(name))
    await client.query('COMMIT')
    return hasTables === 'false'
  } catch (error) {
    await client.query('ROLLBACK').catch(() => {})
    throw notMade(schema, error)
  }
}

function notMade(schema: string, error: unknown): unknown {
  if (isRightMissing(error)) {
    const fix = `grant CREATE on the database, or run the SQL that "media-webhooks inbox <url> migrate --print" prints`
    return unusable(`this user may not make the schema ${schema}: ${fix}`, error)
  }
  // The name is reserved, or a table of that name exists.
  if (isWrongSql(error))
    return unusable(`the tables in the schema ${schema} cannot be made: ${(error as Error).message}`, error)
  return error
}

async function checkRights(client: Client, schema: string): Promise<void> {
  const { rows } = await client.query(
    `SELECT relname FROM pg_class JOIN pg_namespace n ON n.oid = relnamespace
     WHERE nspname = $1 AND NOT (has_schema_privilege(n.oid, 'USAGE') AND CASE
       WHEN relkind = 'r' AND relname = ANY ($2) THEN has_table_privilege(pg_class.oid, 'SELECT')
         AND has_table_privilege(pg_class.oid, 'INSERT') AND has_table_privilege(pg_class.oid, 'UPDATE')
         AND has_table_privilege(pg_class.oid, 'DELETE')
       WHEN relkind = 'S' AND relname = 'event_id' THEN has_sequence_privilege(pg_class.oid, 'USAGE')
       ELSE true END)`,
    [schema, ['key', 'event', 'owner', 'dead_letter']],
  )
  if (rows.length > 0) throw missingRight(schema)
}

const isRightMissing = (error: unknown): boolean => (error as { code?: unknown }).code === '42501'

/** `true` for an error of class 42: a table or a name is not as the statement expects. */
const isWrongSql = (error: unknown): boolean => `${(error as { code?: unknown }).code}`.startsWith('42')

const notOurs = (schema: string, cause?: unknown): WebhookError =>
  unusable(
    `the schema ${schema} has a table "version" of another program: name a schema that only the inbox uses`,
    cause,
  )

const missingRight = (schema: string, cause?: unknown): WebhookError =>
  unusable(
    `this user may not read and write the tables of the schema ${schema}: ` +
      'grant it USAGE on the schema and all rights on its tables and sequences',
    cause,
  )

const unusable = (problem: string, cause?: unknown): WebhookError =>
  new WebhookError('unavailable', `the Postgres database cannot be used: ${problem}`, { cause })
