import type pg from 'pg'
import { checkedApart, checkOptions, flag, type Rules, wholeNumber } from '../internal/check-options.ts'
import { defineInbox } from './define-inbox.ts'
import type { InboxDefinition, InboxHost, Transactional } from './inbox.ts'
import { checkRoute, type PostgresConnection } from './postgres/connection.ts'
import { PostgresDatabase } from './postgres/database.ts'
import { checkSchemaName, standardSchema } from './postgres/schema.ts'
import { SqlInbox } from './sql/inbox.ts'

export { poolOf } from './postgres/client-pool.ts'
export { type InboxDatabaseOptions, migrate, openInboxDatabase } from './postgres/inspection.ts'
export { migrationSql } from './postgres/schema.ts'

/** Options of `postgresInbox`: limits, and either `pool` or `connection`. */
export interface PostgresInboxOptions {
  /**
   * Your application's pool (`pg`). Handlers' transactions take their clients from it. The inbox opens up to twelve
   * more connections with the same options, so deliveries never wait for handlers. It adds an `error` listener to the
   * pool, and does not close it.
   */
  readonly pool?: pg.Pool
  /**
   * A database URL, or pool options: the inbox then makes a pool with room for a transaction per running handler. Must
   * name the server; pg's default is localhost. A pool works like {@link PostgresInboxOptions.pool | pool}.
   */
  readonly connection?: PostgresConnection
  /**
   * Schema of the inbox's tables. Receivers with the same schema share their events.
   * @defaultValue 'media_webhooks'
   */
  readonly schema?: string
  /**
   * `false` for a process that only accepts events, for others to handle. Register the same handlers under the same
   * names in both: a receiver ignores event types without a handler.
   * @defaultValue true
   */
  readonly handles?: boolean
  /**
   * Events this process handles at a time.
   * @defaultValue 16
   */
  readonly concurrency?: number
  /**
   * How long events stay with a process that stopped responding (ms). Must be longer than handlers block the event
   * loop: the lease is renewed every third of it.
   * @defaultValue 30_000
   */
  readonly leaseMs?: number
  /**
   * How long event keys and outcomes are remembered once the event has ended (ms).
   * @defaultValue 86_400_000 (24 h)
   */
  readonly ttlMs?: number
  /**
   * How long a step may wait for an unreachable Postgres (ms). Keep it below the sender's timeout.
   * @defaultValue 2_000
   */
  readonly timeoutMs?: number
  /**
   * `false` behind a transaction pooler (PgBouncer, Supabase, Neon), which forwards no notifications: the inbox then
   * polls every 250 ms, without named prepared statements. With `true`, `ready()` rejects behind such a pooler.
   * @defaultValue true
   */
  readonly listen?: boolean
}

/**
 * An inbox in Postgres 13 or later, shared by any number of processes. It survives the loss of any of them, and keeps
 * each media item's events in order across all of them. What handlers write with `context.transaction` is written
 * exactly once. While Postgres is unreachable, deliveries wait up to `timeoutMs`, then get a 503; the inbox recovers by
 * itself. The tables have a separate schema. The newest 1,000 unreadable deliveries are kept.
 *
 * ```ts
 * const receiver = createReceiver({ verify, inbox: postgresInbox({ pool }) })
 * receiver.on('encoding.finished', (event, { transaction }) =>
 *   transaction((client) => client.query('UPDATE video SET ready = true WHERE id = $1', [event.mediaId])),
 * )
 * await receiver.ready()
 * ```
 * @throws WebhookError `invalid_option`; `receiver.ready()` rejects with `unavailable` if the database cannot be used
 */
export function postgresInbox(options: PostgresInboxOptions): InboxDefinition<Transactional<pg.PoolClient>> {
  checkOptions('postgresInbox', options, rules)
  const { schema = standardSchema, handles = true, concurrency = 16 } = options ?? {}
  const { leaseMs = 30_000, ttlMs = 86_400_000, timeoutMs = 2_000, listen = true } = options ?? {}
  checkSchemaName('postgresInbox', schema)
  const limits = { handles, concurrency, leaseMs, ttlMs, timeoutMs }
  const settings = { ...checkRoute('postgresInbox', options ?? {}), ...limits, schema, listen }
  const open = (host: InboxHost) => new SqlInbox(host, new PostgresDatabase(host, settings), limits)
  return defineInbox({
    name: 'postgresInbox',
    storage: 'database',
    expects: true,
    ordersStrictly: true,
    limits: true,
    open,
  })
}

const rules: Rules<PostgresInboxOptions> = {
  pool: checkedApart,
  connection: checkedApart,
  schema: checkedApart,
  handles: flag,
  concurrency: wholeNumber(),
  leaseMs: wholeNumber(),
  ttlMs: wholeNumber(),
  timeoutMs: wholeNumber(),
  listen: flag,
}
