import type pg from 'pg'
import { checkedApart, checkOptions } from '../../check-options.ts'
import type { InspectedInbox } from '../reading.ts'
import { inspectedInbox } from '../sql/inspection.ts'
import { type PostgresConnection, routeOf } from './connection.ts'
import { unreachable } from './database.ts'
import { postgresReading } from './event-reading.ts'
import { makePool, releaseClient, takeClient } from './pool.ts'
import { checkTables, prepareSchema } from './prepare-schema.ts'
import { replays } from './replay.ts'
import { checkSchemaName, standardSchema } from './schema.ts'
import { tablesOver } from './tables.ts'

/** The options of `openInboxDatabase`: either `pool` or `connection`. */
export interface InboxDatabaseOptions {
  /** A pool of the `pg` package. It is not closed. */
  readonly pool?: pg.Pool
  /** The URL of the database, or the options of a pool to make. It has to name the server. */
  readonly connection?: PostgresConnection
  /**
   * The schema of the inbox's tables.
   * @defaultValue 'media_webhooks'
   */
  readonly schema?: string
}

/** Maximum time that a connection or a statement may take, in ms. A count reads all the events. */
const timeoutMs = 10_000

/**
 * Opens the tables of a `postgresInbox` to inspect them. Claimed events are `running` here, also before they start. It makes no
 * tables. To count and list, the user needs only the right to read them.
 *
 * ```ts
 * const database = await openInboxDatabase({ connection: process.env.DATABASE_URL! })
 * console.log(await database.stats())
 * await database.close()
 * ```
 * @throws WebhookError `invalid_option`; `unavailable` when there are no tables, when their version is too old or too
 * new, or when Postgres cannot be reached
 */
export async function openInboxDatabase(options: InboxDatabaseOptions): Promise<InspectedInbox> {
  checkOptions('openInboxDatabase', options, { pool: checkedApart, connection: checkedApart, schema: checkedApart })
  const { schema = standardSchema } = options ?? {}
  checkSchemaName('openInboxDatabase', schema)
  const { given, config } = routeOf('openInboxDatabase', options ?? {})
  const pool = given ?? poolOf(config)
  const close = async () => {
    if (given === undefined) await pool.end()
  }
  try {
    await withClient(pool, (client) => checkTables(client, schema))
  } catch (error) {
    await close()
    throw error
  }
  const tables = tablesOver(schema, (query) => pool.query(query).catch((error) => Promise.reject(unreachable(error))))
  return inspectedInbox(tables, { replays, reading: postgresReading(tables, { listen: true }), close })
}

/**
 * Makes the tables of `postgresInbox`, or updates them, and checks that the user of the connection
 * may use them. Receivers do the same when they start. Several may run at a time.
 * @returns `true` if it made or changed the tables, `false` if there was nothing to do
 * @throws WebhookError `invalid_option`; `unavailable` when the database cannot be used
 */
export async function migrate(
  connection: PostgresConnection,
  options: Pick<InboxDatabaseOptions, 'schema'> = {},
): Promise<boolean> {
  checkOptions('migrate', options, { schema: checkedApart })
  const { schema = standardSchema } = options
  checkSchemaName('migrate', schema)
  const pool = poolOf(routeOf('migrate', { connection }).config)
  return withClient(pool, (client) => prepareSchema(client, schema)).finally(() => pool.end())
}

const poolOf = (config: pg.PoolConfig): pg.Pool =>
  makePool({ connectionTimeoutMillis: timeoutMs, query_timeout: timeoutMs, ...config, max: 1 })

async function withClient<T>(pool: pg.Pool, run: (client: pg.PoolClient) => Promise<T>): Promise<T> {
  try {
    const client = await takeClient(pool)
    return await run(client).finally(() => releaseClient(client))
  } catch (error) {
    throw unreachable(error)
  }
}
