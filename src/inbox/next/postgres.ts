import type pg from 'pg'
import { checkedApart, checkOptions, flag, type Rules, wholeNumber } from '../../internal/check-options.ts'
import { defineInbox } from '../define-inbox.ts'
import type { InboxDefinition, InboxHost, Transactional } from '../inbox.ts'
import { routeOf } from '../postgres/connection.ts'
import type { PostgresInboxOptions } from '../postgres.ts'
import { PostgresDatabase } from './postgres/database.ts'
import { checkSchemaName, standardSchema } from './postgres/schema.ts'
import { SqlInbox } from './sql/inbox.ts'

export { type InboxDatabaseOptions, migrate, openInboxDatabase } from './postgres/inspection.ts'
export { migrationSql } from './postgres/schema.ts'
export type { PostgresInboxOptions }

/** To be replaced by the docstring of ../postgres.ts. */
export function postgresInbox(options: PostgresInboxOptions): InboxDefinition<Transactional<pg.PoolClient>> {
  checkOptions('postgresInbox', options, rules)
  const { schema = standardSchema, handles = true, concurrency = 16 } = options ?? {}
  const { leaseMs = 30_000, ttlMs = 86_400_000, timeoutMs = 2_000, listen = true } = options ?? {}
  checkSchemaName('postgresInbox', schema)
  const limits = { handles, concurrency, leaseMs, ttlMs, timeoutMs }
  const settings = { ...routeOf('postgresInbox', options ?? {}), schema, listen, ...limits }
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
