import type pg from 'pg'
import { checkedApart, checkOptions, type Rules, wholeNumber } from '../check-options.ts'
import { WebhookError } from '../errors.ts'
import type { InboxDefinition, Transactional } from './inbox.ts'
import { connectionTo, type PgliteDatabase } from './pglite/link.ts'
import { type PostgresInboxOptions, postgresInbox } from './postgres.ts'

export type { PgliteDatabase } from './pglite/link.ts'

/** The options of `pgliteInbox`. */
export interface PgliteInboxOptions
  extends Pick<PostgresInboxOptions, 'schema' | 'concurrency' | 'leaseMs' | 'ttlMs' | 'timeoutMs'> {
  /** The application's PGlite. The inbox does not close it. */
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
 * The inbox of {@link postgresInbox} in a [PGlite](https://pglite.dev): Postgres inside this process, in a folder or in
 * memory, with no server to install. Needs the packages `pg` and `@electric-sql/pglite`. It is made for development, tests and
 * small servers: every query blocks the event loop while it runs, and a transaction of a handler keeps all others, and
 * deliveries, waiting. After a crash its events are handled once `leaseMs` is over.
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
  // A session that connections share cannot listen, and cannot prepare a statement for one of them.
  const definition = postgresInbox({ ...others, connection: connectionTo(db), listen: false })
  return { ...definition, name: 'pgliteInbox', storage: 'file' }
}
