import type pg from 'pg'
import { checkedApart, checkOptions, flag, type Rules, wholeNumber } from '../check-options.ts'
import { defineInbox } from './define-inbox.ts'
import type { InboxDefinition, InboxHost, Transactional } from './inbox.ts'
import { type PostgresConnection, routeOf } from './postgres/connection.ts'
import { checkSchemaName, standardSchema } from './postgres/schema.ts'
import { PostgresStore } from './postgres/store.ts'
import { SqlInbox } from './sql/inbox.ts'

export { type InboxDatabaseOptions, migrate, openInboxDatabase } from './postgres/inspection.ts'
export { migrationSql } from './postgres/schema.ts'

/** The options of `postgresInbox`: either `pool` or `connection`, and limits. */
export interface PostgresInboxOptions {
  /**
   * The application's own pool of the `pg` package. The transactions of handlers take their clients from it. The inbox
   * makes up to eleven more connections with its options, so that deliveries never wait for handlers. It listens for the
   * pool's errors, and does not close the pool.
   */
  readonly pool?: pg.Pool
  /**
   * The URL of a database, or the options of a pool to make, which has room for a transaction of each running handler. They
   * must name the server: nothing means localhost. A pool is taken as {@link PostgresInboxOptions.pool | pool}.
   */
  readonly connection?: PostgresConnection
  /**
   * The schema of the inbox's tables. Receivers that name the same one share their events.
   * @defaultValue 'media_webhooks'
   */
  readonly schema?: string
  /**
   * `false` for a process that only accepts events, which others handle. Register the same handlers in both, with the same
   * names: a receiver ignores events of a type that it has no handler for.
   * @defaultValue true
   */
  readonly handles?: boolean
  /**
   * The number of events that this process handles at a time.
   * @defaultValue 16
   */
  readonly concurrency?: number
  /**
   * The time for which events stay with a process that has stopped answering, in ms. It must be longer than handlers keep
   * the event loop busy: the lease is renewed every third of it.
   * @defaultValue 30_000
   */
  readonly leaseMs?: number
  /**
   * The time for which event keys and the outcome of their events are remembered, in ms from its end.
   * @defaultValue 86_400_000 (24 h)
   */
  readonly ttlMs?: number
  /**
   * The time for which a step may wait for an unreachable Postgres, in ms. Keep it below the time that
   * the sender gives a delivery.
   * @defaultValue 2_000
   */
  readonly timeoutMs?: number
  /**
   * `false` behind a transaction pooler (PgBouncer, Supabase, Neon), which passes no notifications on: the inbox looks for
   * events every 250 ms then, and prepares no statement by name. With `true`, `ready()` rejects behind such a pooler.
   * @defaultValue true
   */
  readonly listen?: boolean
}

/**
 * An inbox in a Postgres database (13 or later), which any number of processes fill and empty. It survives the loss of
 * any of them, and keeps the order of the events of each media item across all of them. Handlers have
 * `context.transaction`: what they write with it is written exactly once. While Postgres is unreachable, deliveries
 * wait up to `timeoutMs` for it, and are answered 503 then; the inbox recovers by itself. It makes its tables in a
 * schema of its own. It keeps the newest 1,000 unreadable deliveries.
 *
 * ```ts
 * const receiver = createReceiver({ verify, inbox: postgresInbox({ pool }) })
 * receiver.on('encoding.finished', (event, { transaction }) =>
 *   transaction((client) => client.query('UPDATE video SET ready = true WHERE id = $1', [event.mediaId])),
 * )
 * await receiver.ready()
 * ```
 * @throws WebhookError `invalid_option`; `receiver.ready()` rejects with `unavailable` when the database cannot be used
 */
export function postgresInbox(options: PostgresInboxOptions): InboxDefinition<Transactional<pg.PoolClient>> {
  checkOptions('postgresInbox', options, rules)
  const { schema = standardSchema, handles = true, concurrency = 16 } = options ?? {}
  const { leaseMs = 30_000, ttlMs = 86_400_000, timeoutMs = 2_000, listen = true } = options ?? {}
  checkSchemaName('postgresInbox', schema)
  const settings = {
    ...routeOf('postgresInbox', options ?? {}),
    schema,
    handles,
    concurrency,
    leaseMs,
    ttlMs,
    timeoutMs,
    listen,
  }
  const open = (host: InboxHost) => new SqlInbox(host, new PostgresStore(host, settings), settings)
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
