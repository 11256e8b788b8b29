import type { Pool, PoolClient, QueryResult } from 'pg'
import { WebhookError } from '../../errors.ts'
import { measure } from '../../internal/maybe-promise.ts'
import { unlessAborted } from '../../internal/unless-aborted.ts'
import type { InboxHost } from '../inbox.ts'
import type { Database } from '../sql/database.ts'
import { withTables } from './dialect.ts'
import { storedName } from './rows.ts'
import { transact } from './statements.ts'
import { inline, literal, query } from './step.ts'
import { isCommitFailure, isOurFailure, isStorageFailure, readOnly } from './storage-failure.ts'
import { connect, TransactionClient } from './transaction-client.ts'

export interface TransactionsOptions {
  readonly pool: Pool
  /** Quoted. */
  readonly schema: string
  readonly leaseMs: number
  readonly measured: InboxHost['measured']
}

/** Makes the transactions of handlers, which begin and commit with one message each. */
export function transactions({ pool, schema, leaseMs, measured }: TransactionsOptions): Database['transaction'] {
  const text = withTables(transact, schema)
  const run: Database['transaction'] = async ({ owner, media, turn, id }, scope, work) => {
    const { handler, signal } = scope
    const pooled = await connect(pool, signal).catch((error) => {
      scope.storageFailed = !signal.aborted
      throw error
    })
    const client = new TransactionClient(pooled, signal)
    /** Whether an error comes from the storage. The step decides: a handler can throw any error. */
    let isStorageError = isOurFailure
    try {
      signal.throwIfAborted()
      const role = await begin(client.pooled, owner, leaseMs)
      isStorageError = isStorageFailure
      const result = await unlessAborted(signal, work(client.lent as never))
      await client.idle()
      signal.throwIfAborted()
      isStorageError = isCommitFailure
      const record = inline(query(text, media, owner, turn, storedName(handler), id))
      // The handler may have changed the role. If a statement fails, Postgres skips those after it.
      await client.commit(`SET LOCAL role = ${literal(role)}; ${record}; COMMIT`).catch((error) => {
        throw commitError(error)
      })
      return result
    } catch (error) {
      const hasFailed = isStorageError(error) || client.isAborted(error)
      await client.rollBack(hasFailed ? (error as Error) : undefined)
      if (signal.aborted) throw signal.reason
      scope.storageFailed = hasFailed || client.isLost
      throw error
    }
  }
  return (held, scope, work) => measure(measured, 'transaction', () => run(held, scope, work))
}

/** Begins a transaction, without a snapshot: the handler may set its isolation level. Returns the role. */
async function begin(client: PoolClient, owner: string, leaseMs: number): Promise<string> {
  // A suspended process must not keep locks beyond its lease. The setting `owner` marks this transaction.
  const results = await client.query(`
    BEGIN; SET LOCAL idle_in_transaction_session_timeout = ${leaseMs}; SET LOCAL media_webhooks.owner = '${owner}';
    SHOW role; SHOW transaction_read_only`)
  const [, , , role, isReadOnly] = results as unknown as QueryResult[]
  if (isReadOnly?.rows[0].transaction_read_only === 'on') throw readOnly()
  return role?.rows[0].role
}

/** Translates an error of the commit. */
function commitError(error: { code?: string; message: string }): Error {
  const setting = error.code === '42704' && /media_webhooks\.(ended|lost)/.exec(error.message)?.[1]
  if (setting === 'lost')
    return new WebhookError('lease_lost', 'another process holds the event now, so the transaction was rolled back')
  if (setting === 'ended')
    return new WebhookError(
      'invalid_transaction',
      'context.transaction: the function ended the transaction itself, past its client. Its writes are committed, but ' +
        'the handler does not count as completed',
    )
  return error as Error
}
