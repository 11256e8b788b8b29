import type { ObjectSql } from '../../storage/durable-objects.ts'
import type { Synchronous } from '../sqlite/transactions.ts'

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
