import type pg from 'pg'
import { checkUnknown } from '../../check-options.ts'
import { WebhookError } from '../../errors.ts'
import { minuteOf, toActivity } from '../operations/activity.ts'
import { historyOf } from '../operations/event-query.ts'
import { StoredPauses } from '../operations/pauses.ts'
import type {
  ActivityMinute,
  DeadLetters,
  EventRecord,
  InboxEvents,
  InboxStats,
  OpenExpectation,
  Pauses,
  ReadableInbox,
  ReplayAllOptions,
  ReplayReport,
} from '../reading.ts'
import { tablesOf, unreachable } from './database.ts'
import { PostgresDeadLetters } from './dead-letters.ts'
import { PostgresEvents } from './events.ts'
import { readExpected } from './expectations.ts'
import { readMinutes, readStats } from './numbers.ts'
import { pauseStorage } from './pauses.ts'
import { configOf, makePool, type PostgresConnection, releaseClient, take } from './pool.ts'
import { checkTables, prepareSchema } from './prepare-schema.ts'
import { checkSchemaName, standardSchema } from './schema.ts'

/** The options of `openInboxDatabase`: either `pool` or `connection`. */
export interface InboxDatabaseOptions {
  /** A pool of the `pg` package. It is not closed. */
  readonly pool?: pg.Pool
  /** The URL of the database, or the options of a pool to make. */
  readonly connection?: PostgresConnection
  /**
   * The schema of the inbox's tables.
   * @defaultValue 'media_webhooks'
   */
  readonly schema?: string
}

/** The tables of a `postgresInbox`, opened for inspection. Receivers can handle its events meanwhile. */
export interface InboxDatabase extends ReadableInbox {
  /** Counts the events by state. Claimed events count as running, also before they start. */
  stats(): Promise<InboxStats>
  /** Lists events, and retries them. Claimed events are shown as running, also before they start. */
  readonly events: InboxEvents
  /** Returns the newest 1,000 events of a media item, in order of acceptance, handled ones included. */
  history(mediaId: string): Promise<readonly EventRecord[]>
  /** Lists the `limit` (100 by default) open expectations that are due first. */
  expected(limit?: number): Promise<readonly OpenExpectation[]>
  /**
   * Returns the active minutes of all receivers since the given time. The last 5 s can be missing. The last 24 h are
   * kept.
   */
  activity(since: Date): Promise<readonly ActivityMinute[]>
  /** Pauses and resumes the handling of events. Receivers obey within two seconds. */
  readonly pauses: Pauses
  /** Lists, replays and discards dead letters. */
  readonly deadLetters: InboxDatabaseDeadLetters
  /** Closes the connections. A given pool stays open. */
  close(): Promise<void>
}

/**
 * The dead letters in the tables of a `postgresInbox`. A running receiver handles replayed ones immediately. Without
 * one, the next receiver that opens the inbox handles them.
 */
export interface InboxDatabaseDeadLetters extends DeadLetters {
  /** Lists the keys of all dead letters, oldest first. */
  keys(): Promise<readonly string[]>
  /**
   * Replays the dead letters with those keys in one commit, and returns the keys of the replayed ones. An unreadable
   * delivery is marked, and a receiver parses it again. It stays if it still cannot be parsed.
   */
  replayMany(keys: readonly string[]): Promise<readonly string[]>
  /** Deletes the dead letters with those keys permanently, and returns the keys of the deleted ones. */
  discardMany(keys: readonly string[]): Promise<readonly string[]>
  /**
   * Replays many dead letters, as an inbox does. It marks unreadable deliveries and counts them as replayed. A receiver
   * parses them again.
   */
  replayAll(options?: ReplayAllOptions): Promise<ReplayReport>
}

/** Maximum time that a connection or a statement may take, in ms. A count reads all the events. */
const timeoutMs = 10_000

/**
 * Opens the tables of a `postgresInbox` to inspect them, to replay or discard dead letters and to retry events. It
 * handles nothing and makes no tables. To count and list, the user needs only the right to read them.
 *
 * ```ts
 * const database = await openInboxDatabase({ connection: process.env.DATABASE_URL! })
 * console.log(await database.stats())
 * await database.close()
 * ```
 * @throws WebhookError `invalid_option`; `unavailable` when there are no tables, when their version is too old or too
 * new, or when Postgres cannot be reached
 */
export async function openInboxDatabase(options: InboxDatabaseOptions): Promise<InboxDatabase> {
  const { pool: given, connection, schema = standardSchema, ...unknown } = options
  checkUnknown('openInboxDatabase', unknown)
  checkSchemaName('openInboxDatabase', schema)
  if ((given === undefined) === (connection === undefined))
    throw new WebhookError('invalid_option', 'openInboxDatabase: give either a pool or a connection')
  const pool = given ?? poolOf(connection ?? '')
  const close = async () => {
    if (given === undefined) await pool.end()
  }
  try {
    await withClient(pool, (client) => checkTables(client, schema))
  } catch (error) {
    await close()
    throw error
  }
  const tables = tablesOf(pool, schema)
  const events = new PostgresEvents(tables)
  return {
    stats: () => readStats(tables),
    deadLetters: new PostgresDeadLetters(tables),
    events,
    history: (mediaId) => historyOf(events, mediaId),
    expected: (limit) => readExpected(tables, limit),
    activity: async (since) => toActivity(await readMinutes(tables, minuteOf(since.getTime()))),
    pauses: new StoredPauses(pauseStorage(tables)),
    close,
  }
}

/**
 * Makes the tables of `postgresInbox`, or updates those of an older version, and checks that the user of the connection
 * may use them. Receivers do the same when they start. Several may run at a time.
 * @returns `true` if it made or changed the tables, `false` if there was nothing to do
 * @throws WebhookError `invalid_option`; `unavailable` when the database cannot be used
 */
export async function migrate(
  connection: PostgresConnection,
  options: Pick<InboxDatabaseOptions, 'schema'> = {},
): Promise<boolean> {
  const { schema = standardSchema, ...unknown } = options
  checkUnknown('migrate', unknown)
  checkSchemaName('migrate', schema)
  const pool = poolOf(connection)
  return withClient(pool, (client) => prepareSchema(client, schema)).finally(() => pool.end())
}

const poolOf = (connection: PostgresConnection): pg.Pool =>
  makePool({ connectionTimeoutMillis: timeoutMs, query_timeout: timeoutMs, ...configOf(connection), max: 1 })

async function withClient<T>(pool: pg.Pool, run: (client: pg.PoolClient) => Promise<T>): Promise<T> {
  try {
    const client = await take(pool)
    return await run(client).finally(() => releaseClient(client))
  } catch (error) {
    throw unreachable(error)
  }
}
