import type { ObjectSql, ObjectStorage } from '../../internal/storage/durable-objects.ts'
import type { InboxHost } from '../inbox.ts'
import type { Database } from '../sql/database.ts'
import { isStorageFailure, prepareAll, type SqliteDatabase, type SqliteStatement } from '../sqlite/connection.ts'
import { type CommitOptions, type InboxLimits, SyncDatabase } from '../sqlite/database.ts'
import { makeTables } from '../sqlite/schema.ts'
import { RecordedRuns } from '../sqlite/transactions.ts'

/** Whoever sets the alarm. */
export interface ObjectWatcher {
  /** Called in the turn of a write. `isEmpty`: no event is unfinished. */
  written(isEmpty: boolean): void
  /** Called at the start. */
  opened(): Promise<void>
}

/**
 * The storage of a Durable Object. Unlike a file: writes are synchronous, since the runtime holds back an object's answers
 * until the writes of the turn are on disk. No other process writes. An object is never told that it ends: the next one
 * finds the lanes that it held.
 */
export class ObjectDatabase extends SyncDatabase {
  // Unhashed, because Workers only hash asynchronously. JSON, because UTF-8 would merge all lone surrogates.
  readonly hashKey = (key: string): string => JSON.stringify(key)
  readonly #storage: ObjectStorage
  readonly #logger: InboxHost['logger']
  readonly #runs: RecordedRuns
  readonly #sql
  watcher: ObjectWatcher | undefined

  constructor(host: InboxHost, storage: ObjectStorage, limits: Required<InboxLimits>) {
    const database = makeDatabase(storage.sql)
    storage.transactionSync(() => makeTables(database))
    super(database, { ...limits, isStrict: host.order === 'strict' })
    this.#storage = storage
    this.#logger = host.logger
    this.#runs = new RecordedRuns(database, storage.sql, false)
    this.#sql = prepareAll(database, wakeUps)
  }

  override open(opened: () => Promise<void>): void {
    void this.start(async () => {
      await opened()
      await this.watcher?.opened()
    }, this.#logger)
  }

  protected override commit<T>(write: () => T, { isLight = false }: CommitOptions = {}): T {
    const { counter } = this.steps
    let isEmpty = false
    const result = this.#storage.transactionSync(() => {
      const result = counter.keep(write)
      isEmpty = counter.unfinished === 0
      return result
    })
    // A claim leaves nothing that an alarm does not guard already.
    if (!isLight) this.watcher?.written(isEmpty)
    return result
  }

  readonly transaction: Database['transaction'] = async (held, scope, run) => {
    // As in other databases, a signal aborted in this turn still rolls back.
    await Promise.resolve()
    try {
      return this.commit(() => this.#runs.run(held, scope, run))
    } catch (error) {
      scope.storageFailed = isStorageFailure(error)
      throw error
    }
  }

  /** When an event can continue (ms since the epoch), now at the earliest. Infinity if none can. */
  workAt(): number {
    return Math.max(readTime(this.#sql.work), Date.now())
  }

  /** Next deadline, possibly past (ms since the epoch). Infinity if nothing is expected. */
  deadlineAt(): number {
    return readTime(this.#sql.deadline)
  }

  override close(): void {
    this.isClosed = true
  }
}

const readTime = (statement: SqliteStatement): number =>
  (statement.get() as { at: number | null }).at ?? Number.POSITIVE_INFINITY

const readyAt = (crashes: string): string =>
  `SELECT min(ready_at) AS at FROM inbox_lane WHERE owner IS NULL AND ready_at IS NOT NULL AND crashes ${crashes}`

/** When an object has to be woken. `work`: now for lanes that it holds, and otherwise for the first that is ready. */
const wakeUps = {
  work: `SELECT CASE
      WHEN EXISTS (SELECT 1 FROM inbox_lane WHERE owner IS NOT NULL) THEN 0
      WHEN NOT EXISTS (SELECT 1 FROM inbox_pause WHERE handler = '')
        THEN (SELECT min(at) FROM (${readyAt('= 0')} UNION ALL ${readyAt('> 0')}))
    END AS at`,
  deadline: 'SELECT min(due_at) AS at FROM inbox_expectation',
}

/** The SQL of an object's storage, with the interface of SQLite's drivers. */
export const makeDatabase = (sql: ObjectSql): SqliteDatabase => ({
  exec: (query) => sql.exec(query),
  prepare: (query) => makeStatement(sql, query),
  close() {},
})

/** The runtime caches prepared statements by their text. */
function makeStatement(sql: ObjectSql, query: string): SqliteStatement {
  const all = (...parameters: unknown[]): unknown[] => sql.exec(query, ...parameters).toArray()
  return {
    all,
    get: (...parameters) => all(...parameters)[0],
    run(...parameters) {
      sql.exec(query, ...parameters)
      // The cursor's own count includes index writes.
      const [counts] = sql.exec('SELECT changes() AS changes, last_insert_rowid() AS lastInsertRowid').toArray()
      return counts as ReturnType<SqliteStatement['run']>
    },
  }
}
