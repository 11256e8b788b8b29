import type { PoolClient, QueryConfig } from 'pg'
import { WebhookError } from '../../errors.ts'
import { lostTables, markName } from './lost-tables.ts'
import { createSchema, createTables, quoted, version } from './schema.ts'
import { literal } from './step.ts'

/** Tables on which the inbox needs all rights. There is also `version`. */
const tableNames = [
  ...['event', 'lane', 'process', 'removed_handler', 'activity'],
  ...['expectation', 'expectation_end', 'operation', 'pause'],
]

type SchemaClient = Pick<PoolClient, 'query'>

/** First key of the advisory lock under which tables are made and sequences raised. The second hashes the schema. */
const lockClass = 1_835_361_385

/** Timeout of making the tables (ms). */
const maxMs = 60_000

/**
 * Makes the tables, and checks that the inbox can use them. Resolves with `true` if it made them.
 * @throws WebhookError `unavailable`
 */
export async function prepareSchema(client: SchemaClient, schema: string): Promise<boolean> {
  const { server, encoding, isReplica, isReadOnly, hasTables } = await readCondition(client, schema)
  if (server < 130_000) throw unusable('it is older than Postgres 13')
  if (isReplica) throw unusable('it is a read-only replica: give the address of the primary')
  if (isReadOnly) throw unusable('its transactions are read-only (default_transaction_read_only)')
  if (encoding !== 'UTF8') throw unusable(`its encoding is ${encoding}: create one with ENCODING 'UTF8'`)
  const isMade = !hasTables && (await makeTables(client, schema))
  await checkVersion(client, schema)
  await checkRights(client, schema)
  await raiseIds(client, schema)
  return isMade
}

/**
 * Checks that the tables exist, and that this version can read them. Makes none.
 * @throws WebhookError `unavailable`
 */
export async function checkTables(client: SchemaClient, schema: string): Promise<void> {
  const { hasTables } = await readCondition(client, schema)
  if (hasTables) return checkVersion(client, schema)
  const fix =
    'start a receiver with postgresInbox, run "npx media-webhooks inbox <url> migrate", or give the right schema'
  throw unusable(`it has no tables of an inbox in the schema ${schema}: ${fix}`)
}

interface Condition {
  readonly server: number
  readonly encoding: string
  readonly isReplica: boolean
  readonly isReadOnly: boolean
  readonly hasSchema: boolean
  readonly hasTables: boolean
  /** True if there were tables, and one of them is gone. */
  readonly hasLost: boolean
}

async function readCondition(client: SchemaClient, schema: string): Promise<Condition> {
  const { rows } = await client.query(
    `SELECT json_build_object(
       'server', current_setting('server_version_num')::int,
       'encoding', current_setting('server_encoding'),
       'isReplica', pg_is_in_recovery(),
       'isReadOnly', current_setting('transaction_read_only') = 'on',
       'hasSchema', EXISTS (SELECT FROM pg_namespace WHERE nspname = $1),
       'hasTables', EXISTS (SELECT FROM pg_class JOIN pg_namespace n ON n.oid = relnamespace
                            WHERE nspname = $1 AND relname = 'version'),
       'hasLost', EXISTS (SELECT FROM pg_proc JOIN pg_namespace n ON n.oid = pronamespace
                          WHERE nspname = $1 AND proname = '${markName}')
         AND (SELECT count(*) < ${tableNames.length + 1} FROM pg_class JOIN pg_namespace n ON n.oid = relnamespace
              WHERE nspname = $1 AND relkind = 'r' AND relname = ANY ($2))
     )::text AS condition`,
    [schema, ['version', ...tableNames]],
  )
  const condition: Condition = JSON.parse(rows[0].condition)
  if (condition.hasLost) throw lostTables(quoted(schema))
  return condition
}

async function checkVersion(client: SchemaClient, schema: string): Promise<void> {
  const { rows } = await client.query(`SELECT version::text FROM ${quoted(schema)}.version`).catch((error) => {
    if (isRightMissing(error)) throw missingRight(schema, error)
    throw isWrongSql(error) ? notOurs(schema, error) : error
  })
  const found = Number(rows[0]?.version ?? Number.NaN)
  if (!Number.isInteger(found)) throw notOurs(schema)
  if (found > version)
    throw unusable(`a newer version of media-webhooks made the schema ${schema}: upgrade this process`)
}

/** Makes the tables under a lock, as several processes may start at once. Returns false if another one was first. */
async function makeTables(client: SchemaClient, schema: string): Promise<boolean> {
  const name = quoted(schema)
  const send = (text: string) => client.query({ text, query_timeout: maxMs } as QueryConfig)
  try {
    await send(`BEGIN ISOLATION LEVEL READ COMMITTED; SET LOCAL statement_timeout = ${maxMs}; ${lock(schema)}`)
    const { hasSchema, hasTables } = await readCondition(client, schema)
    // Postgres wants the right to create schemas even if this one exists.
    if (!hasTables) await send((hasSchema ? '' : createSchema(name)) + createTables(name))
    await send('COMMIT')
    return !hasTables
  } catch (error) {
    await client.query('ROLLBACK').catch(() => {})
    throw notMade(schema, error)
  }
}

const lock = (schema: string): string =>
  `SELECT pg_advisory_xact_lock(${lockClass}, hashtext(${literal(`migrate ${schema}`)}))`

function notMade(schema: string, error: unknown): unknown {
  const fix =
    'grant CREATE on the database, or run the SQL that "npx media-webhooks inbox <url> migrate --print" prints'
  if (isRightMissing(error)) return unusable(`this user may not make the schema ${schema}: ${fix}`, error)
  // A reserved name, or a table of that name exists.
  if (isWrongSql(error))
    return unusable(`the tables in the schema ${schema} cannot be made: ${(error as Error).message}`, error)
  return error
}

async function checkRights(client: SchemaClient, schema: string): Promise<void> {
  const { rows } = await client.query(
    `SELECT FROM pg_class JOIN pg_namespace n ON n.oid = relnamespace
     WHERE nspname = $1 AND NOT (has_schema_privilege(n.oid, 'USAGE') AND CASE
       WHEN relkind = 'r' AND relname = ANY ($2) THEN has_table_privilege(pg_class.oid, 'SELECT')
         AND has_table_privilege(pg_class.oid, 'INSERT') AND has_table_privilege(pg_class.oid, 'UPDATE')
         AND has_table_privilege(pg_class.oid, 'DELETE')
       WHEN relkind = 'S' AND relname = 'event_id_seq' THEN has_sequence_privilege(pg_class.oid, 'USAGE')
       ELSE true END)`,
    [schema, tableNames],
  )
  if (rows.length > 0) throw missingRight(schema)
}

/**
 * Raises sequences that are behind their tables: a failover to a logical replica copies rows but no sequences, and an event
 * behind its lane's position would never be read. Under a lock, so that no other start sets them back.
 */
async function raiseIds(client: SchemaClient, schema: string): Promise<void> {
  const name = quoted(schema)
  const ids = {
    event: `(SELECT max(id) FROM ${name}.event), (SELECT max(position) FROM ${name}.lane)`,
    operation: `(SELECT max(id) FROM ${name}.operation)`,
  }
  const behind = Object.entries(ids).map(([table, highest]) => {
    const sequence = `${literal(`${name}.${table}_id_seq`)}::regclass`
    // Inserting needs no right on an identity column's sequence; reading the sequence does.
    const last = `CASE WHEN has_sequence_privilege(${sequence}, 'USAGE, SELECT')
      THEN coalesce(pg_sequence_last_value(${sequence}), 0) ELSE highest END`
    return { sequence, where: `FROM (SELECT greatest(${highest}) AS highest OFFSET 0) ids WHERE highest > ${last}` }
  })
  const { rows } = await client.query(behind.map(({ where }) => `SELECT ${where}`).join(' UNION ALL '))
  if (rows.length === 0) return
  const raise = behind.map(({ sequence, where }) => `SELECT setval(${sequence}, highest) ${where}`).join('; ')
  await client.query(`BEGIN; ${lock(schema)}; ${raise}; COMMIT`).catch(async (error) => {
    await client.query('ROLLBACK').catch(() => {})
    if (!isRightMissing(error)) throw error
    const fix = 'grant it UPDATE on them, or start the inbox once as their owner'
    const problem = `the sequences of the schema ${schema} are behind its tables, as after a failover to a logical replica`
    throw unusable(`${problem}, and this user may not raise them: ${fix}`, error)
  })
}

const isRightMissing = (error: unknown): boolean => (error as { code?: unknown }).code === '42501'

/** True for class 42: a table or name is not what the statement expects. */
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
