import type { PoolClient, QueryConfig } from 'pg'
import { WebhookError } from '../../errors.ts'
import { createSchema, literal, lockClass, type Migration, migrations, migrationsFrom, quoted } from './schema.ts'

/** Tables on which the inbox needs all rights. */
const tableNames = [
  ...['event', 'lane', 'process', 'removed_handler', 'activity'],
  ...['expectation', 'expectation_end', 'operation', 'pause'],
]

type SchemaClient = Pick<PoolClient, 'query'>

/** Timeout of making or updating the tables (ms). */
const maxMs = 60_000

/** Maximum wait for a lock (ms): statements of other processes queue behind it. */
const lockMs = 300

/** Attempts to get the locks, and the delay between them (ms). */
const maxLockAttempts = 20
const lockRetryDelayMs = 200

interface Condition {
  /** Version of the tables, 0 if there are none. */
  readonly version: number
  readonly server: number
  readonly encoding: string
  readonly isReplica: boolean
  readonly isReadOnly: boolean
  readonly hasSchema: boolean
}

/**
 * Makes or updates the tables, and checks that the inbox can use them. Resolves with `true` if it changed them.
 * @throws WebhookError `unavailable`
 */
export async function prepareSchema(client: SchemaClient, schema: string, all = migrations): Promise<boolean> {
  const { version, server, encoding, isReplica, isReadOnly } = await readCondition(client, schema, all)
  if (server < 130_000) throw unusable('it is older than Postgres 13')
  if (isReplica) throw unusable('it is a read-only replica: give the address of the primary')
  if (isReadOnly) throw unusable('its transactions are read-only (default_transaction_read_only)')
  if (encoding !== 'UTF8') throw unusable(`its encoding is ${encoding}: create one with ENCODING 'UTF8'`)
  const isChanged = version < all.length && (await makeTables(client, schema, all))
  await checkRights(client, schema)
  await raiseIds(client, schema)
  return isChanged
}

/** Selects the ids of each sequence. An event behind its lane's position would never be read. */
const idsOf = (schema: string): Readonly<Record<string, readonly string[]>> => ({
  [sequenceOf(schema, 'event')]: [`SELECT max(id) FROM ${schema}.event`, `SELECT max(position) FROM ${schema}.lane`],
  [sequenceOf(schema, 'operation')]: [`SELECT max(id) FROM ${schema}.operation`],
})

const sequenceOf = (schema: string, table: string): string =>
  `pg_get_serial_sequence(${literal(`${schema}.${table}`)}, 'id')::regclass`

/**
 * Raises sequences that are behind their tables: a failover to a logical replica copies rows but no sequences, and new
 * events would reuse ids. Under a lock, so that no other start sets them back.
 */
async function raiseIds(client: SchemaClient, schema: string): Promise<void> {
  const behind = Object.entries(idsOf(quoted(schema))).map(([sequence, ids]) => {
    // Inserting needs no right on an identity column's sequence; reading the sequence does.
    const last = `CASE WHEN has_sequence_privilege(${sequence}, 'USAGE, SELECT')
      THEN coalesce(pg_sequence_last_value(${sequence}), 0) ELSE highest END`
    const where = `FROM (SELECT greatest(${ids.map((id) => `(${id})`)}) AS highest OFFSET 0) ids WHERE highest > ${last}`
    return { sequence, where }
  })
  const { rows } = await client.query(behind.map(({ where }) => `SELECT ${where}`).join(' UNION ALL '))
  if (rows.length === 0) return
  const raise = behind.map(({ sequence, where }) => `SELECT setval(${sequence}, highest) ${where}`).join('; ')
  await client
    .query(
      `BEGIN; SELECT pg_advisory_xact_lock(${lockClass}, hashtext(${literal(`migrate ${schema}`)})); ${raise}; COMMIT`,
    )
    .catch(async (error) => {
      await client.query('ROLLBACK').catch(() => {})
      if (!isRightMissing(error)) throw error
      throw unusable(
        `the sequences of the schema ${schema} are behind its tables, as after a failover to a logical replica, and ` +
          'this user may not raise them: grant it UPDATE on them, or start the inbox once as their owner',
        error,
      )
    })
}

/**
 * Checks that the tables exist, and that this version can read them. Makes none.
 * @throws WebhookError `unavailable`
 */
export async function checkTables(client: SchemaClient, schema: string, all = migrations): Promise<void> {
  const { version } = await readCondition(client, schema, all)
  if (version >= all.length) return
  const fix = 'start a receiver with postgresInbox, or run "media-webhooks inbox <url> migrate"'
  if (version > 0) throw unusable(`the tables in the schema ${schema} need an update: ${fix}`)
  throw unusable(`it has no tables of an inbox in the schema ${schema}: ${fix}, or give the right schema`)
}

async function readCondition(client: SchemaClient, schema: string, all: readonly Migration[]): Promise<Condition> {
  const { rows } = await client.query(
    `SELECT json_build_object(
       'server', current_setting('server_version_num')::int,
       'encoding', current_setting('server_encoding'),
       'isReplica', pg_is_in_recovery(),
       'isReadOnly', current_setting('transaction_read_only') = 'on',
       'hasSchema', EXISTS (SELECT FROM pg_namespace WHERE nspname = $1),
       'hasTables', EXISTS (SELECT FROM pg_class JOIN pg_namespace n ON n.oid = relnamespace
                            WHERE nspname = $1 AND relname = 'version')
     )::text AS condition`,
    [schema],
  )
  const { hasTables, ...condition } = JSON.parse(rows[0].condition)
  return { ...condition, version: hasTables ? await readVersion(client, schema, all.length) : 0 }
}

/** @param known newest version this release knows */
async function readVersion(client: SchemaClient, schema: string, known: number): Promise<number> {
  const result = await client
    .query(`SELECT row_to_json(found)::text AS found FROM ${quoted(schema)}.version found`)
    .catch((error) => {
      if (isRightMissing(error)) throw missingRight(schema, error)
      throw isWrongSql(error) ? notOurs(schema, error) : error
    })
  const { version, tables } = JSON.parse(result.rows[0]?.found ?? '{}')
  if (!Number.isInteger(version) || !Number.isInteger(tables)) throw notOurs(schema)
  if (version > known)
    throw unusable(`a newer version of media-webhooks made the schema ${schema}: upgrade this process`)
  return tables
}

/** Makes or updates the tables without blocking processes that use them: if a lock takes long, retries later. */
async function makeTables(client: SchemaClient, schema: string, all: readonly Migration[]): Promise<boolean> {
  for (let attempt = 1; ; attempt++) {
    await client.query('BEGIN ISOLATION LEVEL READ COMMITTED')
    try {
      const isChanged = await makeTablesOnce(client, schema, all)
      await client.query('COMMIT')
      return isChanged
    } catch (error) {
      await client.query('ROLLBACK').catch(() => {})
      if (!isLocked(error) || attempt === maxLockAttempts) throw error
      await new Promise((resolve) => setTimeout(resolve, lockRetryDelayMs))
    }
  }
}

/** Under a lock, as several processes may start at once. Returns false if another one was first. */
async function makeTablesOnce(client: SchemaClient, schema: string, all: readonly Migration[]): Promise<boolean> {
  const name = quoted(schema)
  const patiently = (text: string) => client.query({ text, query_timeout: maxMs } as QueryConfig)
  await client.query(`SET LOCAL statement_timeout = ${maxMs}`)
  await patiently(`SELECT pg_advisory_xact_lock(${lockClass}, hashtext(${literal(`migrate ${schema}`)}))`)
  const { version, hasSchema } = await readCondition(client, schema, all)
  if (version >= all.length) return false
  // Postgres wants the right to create schemas even if this one exists.
  const sql = (hasSchema ? '' : createSchema(name)) + migrationsFrom(name, version, { all })
  try {
    await patiently(`SET LOCAL lock_timeout = ${lockMs};${sql}`)
  } catch (error) {
    throw notMade(schema, version, error)
  }
  return true
}

function notMade(schema: string, version: number, error: unknown): unknown {
  if (isRightMissing(error)) {
    const sql = 'run the SQL that "media-webhooks inbox <url> migrate --print" prints'
    if (version > 0) return unusable(`this user may not update the tables in the schema ${schema}: ${sql}`, error)
    return unusable(`this user may not make the schema ${schema}: grant CREATE on the database, or ${sql}`, error)
  }
  // A reserved name, or a table of that name exists.
  if (isWrongSql(error))
    return unusable(`the tables in the schema ${schema} cannot be made: ${(error as Error).message}`, error)
  return error
}

async function checkRights(client: SchemaClient, schema: string): Promise<void> {
  const { rows } = await client.query(
    `SELECT relname FROM pg_class JOIN pg_namespace n ON n.oid = relnamespace
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

const isRightMissing = (error: unknown): boolean => (error as { code?: unknown }).code === '42501'

/** True if a lock took too long, or on a deadlock. */
const isLocked = (error: unknown): boolean => ['55P03', '40P01'].includes(`${(error as { code?: unknown }).code}`)

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
