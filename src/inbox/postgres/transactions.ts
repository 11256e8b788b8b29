import type { Pool } from 'pg'
import { measure } from '../../internal/maybe-promise.ts'
import { unlessAborted } from '../../internal/unless-aborted.ts'
import type { Attempt, InboxHost } from '../inbox.ts'
import { Completion, type CompletionOptions, commitError } from './completion.ts'
import type { PostgresJob } from './job.ts'
import { connect, TransactionClient } from './transaction-client.ts'

export interface TransactionsOptions extends CompletionOptions {
  readonly pool: Pool
  readonly measured: InboxHost['measured']
}

/** Makes the transactions of the handlers of a claimed event. */
export function transactions({ pool, measured, ...options }: TransactionsOptions) {
  const completion = new Completion(options)
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
        const commit = await completion.begin(client.pooled, job, handler)
        const result = await unlessAborted(signal, run(client.lent as never))
        signal.throwIfAborted()
        await client.commit(commit).catch((error) => Promise.reject(commitError(error)))
        return result
      } catch (error) {
        await client.rollBack()
        if (signal.aborted) throw signal.reason
        scope.storageFailed = client.isLost || isStorageFailure(error) || completion.cannotPrepare(error)
        throw error
      }
    }
    return (scope, run) => measure(measured, 'transaction', () => transact(scope, run))
  }
}

/**
 * Returns `true` if an error, or the one that it wraps, means that Postgres cannot do anything now: its disk is full or
 * lost, or it stops, starts or fails over.
 */
function isStorageFailure(error: unknown): boolean {
  const { code, cause } = Object(error)
  return /^(08|53|57P0[1-3]$|58|25006)/.test(code) || (cause !== undefined && isStorageFailure(cause))
}
