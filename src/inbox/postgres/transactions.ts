import type { Pool } from 'pg'
import { measure } from '../../internal/maybe-promise.ts'
import { unlessAborted } from '../../internal/unless-aborted.ts'
import type { Attempt, InboxHost } from '../inbox.ts'
import type { SqlJob } from '../sql/job.ts'
import { Completion, type CompletionOptions, commitError } from './completion.ts'
import { isCommitFailure, isOurFailure, isStorageFailure } from './storage-failure.ts'
import { connect, TransactionClient } from './transaction-client.ts'

export interface TransactionsOptions extends CompletionOptions {
  readonly pool: Pool
  readonly measured: InboxHost['measured']
}

type Transact = NonNullable<Attempt['transaction']>

/** Makes the transactions of a claimed event's handlers. `owner`: the process that holds it. */
export function transactions({ pool, measured, ...options }: TransactionsOptions) {
  const completion = new Completion(options)
  return (job: SqlJob, owner: string): Transact => {
    const transact: Transact = async (scope, run) => {
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
        const commit = await completion.begin(client.pooled, job, owner, handler)
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
        scope.storageFailed = hasFailed || client.isLost || completion.cannotPrepare(error)
        throw error
      }
    }
    return (scope, run) => measure(measured, 'transaction', () => transact(scope, run))
  }
}
