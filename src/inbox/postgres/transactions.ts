import { randomUUID } from 'node:crypto'
import type { Pool, PoolClient, QueryResult } from 'pg'
import { WebhookError } from '../../errors.ts'
import { measure } from '../../internal/maybe-promise.ts'
import { unlessAborted } from '../../internal/unless-aborted.ts'
import type { InboxHost } from '../inbox.ts'
import type { Database, HeldEvent } from '../sql/database.ts'
import { withTables } from './dialect.ts'
import { storedName } from './rows.ts'
import * as sql from './statements.ts'
import { inline, literal } from './step.ts'
import { isCommitFailure, isOurFailure, isStorageFailure, readOnly } from './storage-failure.ts'
import { connect, TransactionClient } from './transaction-client.ts'

export interface TransactionsOptions {
  readonly pool: Pool
  /** Quoted. */
  readonly schema: string
  readonly leaseMs: number
  /** False if a connection's prepared statements are gone in the next transaction. */
  readonly prepares: boolean
  readonly measured: InboxHost['measured']
}

/** Makes the transactions of handlers, which begin and commit with one message each. */
export function transactions({ pool, measured, ...options }: TransactionsOptions): Database['transaction'] {
  const record = new Record(options)
  const transact: Database['transaction'] = async (held, scope, run) => {
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
      const commit = await record.begin(client.pooled, held, handler)
      isStorageError = isStorageFailure
      const result = await unlessAborted(signal, run(client.lent as never))
      await client.idle()
      signal.throwIfAborted()
      isStorageError = isCommitFailure
      await client.commit(commit).catch((error) => Promise.reject(commitError(error)))
      return result
    } catch (error) {
      const hasFailed = isStorageError(error)
      await client.rollBack(hasFailed ? (error as Error) : undefined)
      if (signal.aborted) throw signal.reason
      scope.storageFailed = hasFailed || client.isLost || record.cannotPrepare(error)
      throw error
    }
  }
  return (held, scope, run) => measure(measured, 'transaction', () => transact(held, scope, run))
}

/**
 * The record that a handler has completed. Connections prepare its statement once: planning it took longer than a
 * handler's INSERT. The rest are commands, which need no plan.
 */
class Record {
  readonly #text: string
  readonly #leaseMs: number
  readonly #name = `media_webhooks_${randomUUID()}`
  readonly #prepared = new WeakSet<PoolClient>()
  #prepares: boolean

  constructor({ schema, leaseMs, prepares }: Pick<TransactionsOptions, 'schema' | 'leaseMs' | 'prepares'>) {
    this.#text = withTables(sql.transact, schema)
    this.#leaseMs = leaseMs
    this.#prepares = prepares
  }

  /** Begins a transaction, without a snapshot: the handler may set its isolation level. Returns the message that commits it. */
  async begin(client: PoolClient, { owner, media, turn, id }: HeldEvent, handler: string): Promise<string> {
    const mustPrepare = this.#prepares && !this.#prepared.has(client)
    // Before BEGIN: PREPARE takes a snapshot.
    if (mustPrepare) await client.query(`PREPARE "${this.#name}" AS ${this.#text}`)
    if (mustPrepare) this.#prepared.add(client)
    // A suspended process must not keep locks beyond its lease. The setting `owner` marks this transaction.
    const results = await client.query(`
      BEGIN; SET LOCAL idle_in_transaction_session_timeout = ${this.#leaseMs}; SET LOCAL media_webhooks.owner = '${owner}';
      SHOW role; SHOW transaction_read_only`)
    const [, , , shownRole, shownReadOnly] = results as unknown as QueryResult[]
    if (shownReadOnly?.rows[0].transaction_read_only === 'on') throw readOnly()
    const role = shownRole?.rows[0].role
    // The handler may have changed the role. If a statement fails, Postgres skips those after it.
    return `SET LOCAL role = ${literal(role)}; ${this.#record([media, owner, turn, storedName(handler), id])}; COMMIT`
  }

  #record(values: readonly unknown[]): string {
    if (!this.#prepares) return inline({ text: this.#text, values })
    // While the table is small, Postgres would plan to scan it, and keep that plan. Reset before the commit, which runs
    // deferred triggers of the user's tables.
    return `SET LOCAL enable_seqscan = off; EXECUTE "${this.#name}" (${values.map(literal)});
      SET LOCAL enable_seqscan TO DEFAULT`
  }

  /** True if the connection lost the prepared statement (DISCARD ALL), or has it already (pooler). Stops preparing. */
  cannotPrepare(error: unknown): boolean {
    const { code, message } = Object(error)
    const isLost = (code === '26000' || code === '42P05') && `${message}`.includes(this.#name)
    if (isLost) this.#prepares = false
    return isLost
  }
}

/** Translates an error of the commit. */
function commitError(error: { code?: string; message: string }): Error {
  const setting = error.code === '42704' && /media_webhooks\.(ended|lost)/.exec(error.message)?.[1]
  if (setting === 'lost')
    return new WebhookError('lease_lost', 'another process holds the event now, so the transaction was rolled back')
  if (setting === 'ended')
    return new WebhookError(
      'invalid_transaction',
      'context.transaction: the function ended the transaction itself, as a transaction of Drizzle or Kysely on the ' +
        'same client does. Its writes are committed, but the handler does not count as completed. Use a savepoint',
    )
  return error as Error
}
