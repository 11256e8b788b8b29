import type pg from 'pg'
import { checkedApart, checkOptions } from '../../internal/check-options.ts'
import type { InspectedInbox } from '../reading.ts'
import { inspectedInbox } from '../sql/inspection.ts'
import { checkRoute, type PostgresConnection } from './connection.ts'
import { PostgresDatabase, unreachable } from './database.ts'
import { makePool, placeOf, releaseClient, takeClient } from './pool.ts'
import { checkTables, prepareSchema } from './prepare-schema.ts'
import { checkSchemaName, standardSchema } from './schema.ts'

/** Options of `openInboxDatabase`: either `pool` or `connection`. */
export interface InboxDatabaseOptions {
  /** A pool of the `pg` package. Not closed. */
  readonly pool?: pg.Pool
  /** A database URL, or pool options. Must name the server. */
  readonly connection?: PostgresConnection
  /**
   * Schema of the inbox's tables.
   * @defaultValue 'media_webhooks'
   */
  readonly schema?: string
}

/** Timeout of a connection or a statement (ms). A count reads all events. */
const timeoutMs = 10_000

/**
 * Opens the tables of a `postgresInbox` for inspection. Creates none. Claimed events count as `running` even before
 * they start. Counting and listing need only the right to read.
 *
 * ```ts
 * const database = await openInboxDatabase({ connection: process.env.DATABASE_URL! })
 * console.log(await database.stats())
 * await database.close()
 * ```
 * @throws WebhookError `invalid_option`; `unavailable` if there are no tables, a newer version made them, or Postgres
 * cannot be reached
 */
export async function openInboxDatabase(options: InboxDatabaseOptions): Promise<InspectedInbox> {
  checkOptions('openInboxDatabase', options, { pool: checkedApart, connection: checkedApart, schema: checkedApart })
  const { schema = standardSchema } = options ?? {}
  checkSchemaName('openInboxDatabase', schema)
  const route = checkRoute('openInboxDatabase', options ?? {})
  const pool = route.given ?? makeSmallPool(route.config)
  const database = PostgresDatabase.inspected(pool, schema, timeoutMs)
  const close = async () => {
    await database.stopNotifying()
    if (route.given === undefined) await pool.end()
  }
  try {
    await withClient(pool, (client) => checkTables(client, schema))
  } catch (error) {
    await close()
    throw error
  }
  return inspectedInbox(database, { close })
}

/**
 * Makes the tables of `postgresInbox`, and checks that the connection's user may use them. Receivers do the
 * same when they start. Safe to run concurrently.
 * @returns `true` if it made tables
 * @throws WebhookError `invalid_option`; `unavailable` if the database cannot be used
 */
export async function migrate(
  connection: PostgresConnection,
  options: Pick<InboxDatabaseOptions, 'schema'> = {},
): Promise<boolean> {
  checkOptions('migrate', options, { schema: checkedApart })
  const { schema = standardSchema } = options
  checkSchemaName('migrate', schema)
  const pool = makeSmallPool(checkRoute('migrate', { connection }).config)
  return withClient(pool, (client) => prepareSchema(client, schema)).finally(() => pool.end())
}

const makeSmallPool = (config: pg.PoolConfig): pg.Pool =>
  makePool({ connectionTimeoutMillis: timeoutMs, query_timeout: timeoutMs, ...config, max: 1 })

async function withClient<T>(pool: pg.Pool, run: (client: pg.PoolClient) => Promise<T>): Promise<T> {
  try {
    const client = await takeClient(pool)
    return await run(client).finally(() => releaseClient(client))
  } catch (error) {
    throw unreachable(error, placeOf(pool.options))
  }
}
