import type { Pool } from 'pg'
import { WebhookError } from '../../errors.ts'
import { measure } from '../../internal/maybe-promise.ts'
import { unlessAborted } from '../../internal/unless-aborted.ts'
import type { Attempt, InboxHost } from '../inbox.ts'
import { isHeldBy } from './claimed.ts'
import type { PostgresJob } from './job.ts'
import { connect, TransactionClient } from './transaction-client.ts'

export interface TransactionsOptions {
  readonly pool: Pool
  readonly schema: string
  readonly leaseMs: number
  readonly measured: InboxHost['measured']
}

/** Makes the transactions of the handlers of a claimed event. */
export function transactions({ pool, schema, leaseMs, measured }: TransactionsOptions) {
  // A process that was suspended must not keep its locks longer than its lease. The marks end with the transaction.
  const begin = (owner: string) =>
    `BEGIN; SET LOCAL idle_in_transaction_session_timeout = ${leaseMs}; SET LOCAL media_webhooks.owner = '${owner}';
     SELECT set_config('media_webhooks.role', current_setting('role'), true)`

  return (job: PostgresJob): Attempt['transaction'] => {
    const transact: NonNullable<Attempt['transaction']> = async (scope, run) => {
      const { handler, signal } = scope
      const pooled = await connect(pool, signal).catch((error) => {
        scope.storageFailed = !signal.aborted
        throw error
      })
      const client = new TransactionClient(pooled, signal)
      try {
        signal.throwIfAborted()
        await client.pooled.query(begin(job.owner))
        const result = await unlessAborted(signal, run(client.lent as never))
        signal.throwIfAborted()
        const name = client.pooled.escapeLiteral(handler.replaceAll('\0', ''))
        await client.commit(completeAndCommit(schema, job, name)).catch((error) => Promise.reject(commitError(error)))
        return result
      } catch (error) {
        await client.rollBack()
        if (signal.aborted) throw signal.reason
        scope.storageFailed = client.isLost || isStorageFailure(error)
        throw error
      }
    }
    return (scope, run) => measure(measured, 'transaction', () => transact(scope, run))
  }
}

/**
 * Records that the handler has completed, and commits, in one message, in the role that the transaction began with.
 * Postgres does not run the commit if a statement before it fails. If `run` has ended the transaction, its marks are
 * empty. If another process has the event, or the handler has completed, no row is updated. Each case reads a setting
 * that does not exist. A trigger of the user's tables cannot raise this error, since deferred triggers run in the
 * commit.
 * @param handler the quoted name of the handler
 */
const completeAndCommit = (schema: string, { id, owner, releases }: PostgresJob, handler: string): string => `
  SELECT CASE current_setting('media_webhooks.owner', true) WHEN '${owner}' THEN ''
    ELSE current_setting('media_webhooks.ended') END;
  SELECT set_config('role', current_setting('media_webhooks.role'), true);
  WITH held AS (
    UPDATE ${schema}.event SET completed = completed || ${handler}::text
    WHERE id = ${id} AND ${isHeldBy(`'${owner}'`, `${releases}`)} AND NOT ${handler}::text = ANY (completed) RETURNING 1
  ) SELECT CASE count(*) WHEN 0 THEN current_setting('media_webhooks.lost') END FROM held;
  COMMIT`

/** The error of {@link completeAndCommit} for an error of Postgres. */
function commitError(error: { code?: string; message: string }): Error {
  const setting = error.code === '42704' && /media_webhooks\.(ended|lost)/.exec(error.message)?.[1]
  if (setting === 'lost')
    return new WebhookError('lease_lost', 'another process has the event, so the transaction was rolled back')
  if (setting === 'ended')
    return new WebhookError(
      'invalid_transaction',
      'context.transaction: its function has ended the transaction, as a transaction of Drizzle or Kysely on the same ' +
        'client does. What it wrote is committed without the record. Use a savepoint instead',
    )
  return error as Error
}

/**
 * Returns `true` if an error, or the one that it wraps, means that Postgres cannot do anything now: its disk is full or
 * lost, or it stops, starts or fails over.
 */
function isStorageFailure(error: unknown): boolean {
  const { code, cause } = Object(error)
  return /^(08|53|57P0[1-3]$|58|25006)/.test(code) || (cause !== undefined && isStorageFailure(cause))
}
