import type { ObjectSql } from '../../storage/durable-objects.ts'
import type { EventStore } from '../sql/store.ts'
import { isStorageFailure } from '../sqlite-tables/database.ts'
import type { SqliteEvents } from '../sqlite-tables/events.ts'
import { LentClient } from '../sqlite-tables/lent-client.ts'
import { RecordedRuns, type Synchronous } from '../sqlite-tables/transactions.ts'
import type { ObjectCommits } from './storage.ts'

/** What `inboxObject` adds to a handler's context. */
export interface ObjectTransactional<Sql extends ObjectSql = ObjectSql> {
  /**
   * Runs `run` in a transaction of the object's storage, and commits its writes together with the record that this
   * handler has completed: both or neither. After that the handler never runs again for this event. An error of `run`
   * or an aborted signal rolls everything back. A handler can call it once. What the handler does afterwards is not
   * repeated if it fails.
   *
   * `run` is synchronous. It writes to the shard of the event's media item, beside the inbox's own tables, whose names
   * begin with `inbox_`. `sql` and its cursors work until `run` returns.
   *
   * @throws WebhookError `invalid_transaction` if `run` returns a promise or uses `sql` after its end, or the signal's
   * reason. Throws `invalid_transaction` synchronously, instead of rejecting, when called again or after the handler
   * has ended
   */
  transaction<Result>(run: (sql: Sql) => Synchronous<Result>): Promise<Result>
}

export function objectTransactions(
  sql: ObjectSql,
  commits: ObjectCommits,
  events: SqliteEvents,
): EventStore['transact'] {
  const runs = new RecordedRuns(events, new LentClient(sql))
  return async ({ job }, scope, run) => {
    // As in other databases, a signal aborted in this turn still rolls back.
    await Promise.resolve()
    try {
      return commits.now(() => runs.run(job.id as number, scope, run))
    } catch (error) {
      scope.storageFailed = isStorageFailure(error)
      throw error
    }
  }
}
