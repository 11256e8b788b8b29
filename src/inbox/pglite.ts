import type pg from 'pg'
import { WebhookError } from '../errors.ts'
import { checkedApart, checkOptions, type Rules, wholeNumber } from '../internal/check-options.ts'
import type { InboxDefinition, Transactional } from './inbox.ts'
import { connectionTo, type PgliteDatabase } from './pglite/link.ts'
import { type PostgresInboxOptions, postgresInbox } from './postgres.ts'

export type { PgliteDatabase } from './pglite/link.ts'

/** Options of `pgliteInbox`. */
export interface PgliteInboxOptions
  extends Pick<PostgresInboxOptions, 'schema' | 'concurrency' | 'leaseMs' | 'ttlMs' | 'timeoutMs'> {
  /** Your application's PGlite. The inbox does not close it. */
  readonly db: PgliteDatabase
}

const rules: Rules<PgliteInboxOptions> = {
  db: checkedApart,
  schema: checkedApart,
  concurrency: wholeNumber(),
  leaseMs: wholeNumber(),
  ttlMs: wholeNumber(),
  timeoutMs: wholeNumber(),
}

/**
 * A {@link postgresInbox} on [PGlite](https://pglite.dev): Postgres inside this process, in a folder or in memory, with
 * no server to install. Needs the packages `pg` and `@electric-sql/pglite`. For development, tests and small servers:
 * every query blocks the event loop, and a handler's transaction blocks all others, and deliveries. After a crash, its
 * events are handled once `leaseMs` is over.
 *
 * ```ts
 * const db = new PGlite('./data')
 * const receiver = createReceiver({ verify, inbox: pgliteInbox({ db }) })
 * ```
 * @throws WebhookError `invalid_option`
 */
export function pgliteInbox(options: PgliteInboxOptions): InboxDefinition<Transactional<pg.PoolClient>> {
  checkOptions('pgliteInbox', options, rules)
  const { db, ...others } = options
  if (typeof db?.execProtocolRaw !== 'function' || typeof db.runExclusive !== 'function') {
    const message = "pgliteInbox: db must be a PGlite, such as new PGlite('./data')"
    throw new WebhookError('invalid_option', message)
  }
  // All connections share one session, which can't listen, nor prepare statements for a single one.
  const definition = postgresInbox({ ...others, connection: connectionTo(db), listen: false })
  return { ...definition, name: 'pgliteInbox', storage: 'file' }
}
