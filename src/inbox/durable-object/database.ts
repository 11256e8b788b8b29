import type { ObjectStorage } from '../../storage/durable-objects.ts'
import type { InboxHost } from '../inbox.ts'
import type { Database, DatabaseListener } from '../sql/database.ts'
import { isStorageFailure, type SqliteStatement } from '../sqlite/connection.ts'
import type { InboxLimits } from '../sqlite/database.ts'
import { type CommitOptions, SyncDatabase } from '../sqlite/database.ts'
import { makeTables } from '../sqlite/schema.ts'
import { RecordedRuns } from '../sqlite/transactions.ts'
import { work } from './statements.ts'
import { databaseOf } from './storage.ts'

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
  readonly #sql: Readonly<Record<keyof typeof work, SqliteStatement>>
  watcher: ObjectWatcher | undefined

  constructor(host: InboxHost, storage: ObjectStorage, limits: InboxLimits) {
    const database = databaseOf(storage.sql)
    storage.transactionSync(() => makeTables(database))
    super(database, { ...limits, isStrict: host.order === 'strict' })
    this.#storage = storage
    this.#logger = host.logger
    this.#runs = new RecordedRuns(database, storage.sql)
    this.#sql = {
      held: database.prepare(work.held),
      isPaused: database.prepare(work.isPaused),
      ready: database.prepare(work.ready),
      deadline: database.prepare(work.deadline),
    }
  }

  override open(opened: () => Promise<void>): void {
    void this.start(async () => {
      await opened()
      await this.watcher?.opened()
    }, this.#logger)
  }

  listen(_listener: DatabaseListener): void {
    // Nobody else writes.
  }

  protected override commit<T>(write: () => T, { isLight = false }: CommitOptions = {}): T {
    const { counter } = this.statements
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
    const now = Date.now()
    if (this.#sql.held.get() !== undefined) return now
    if (this.#sql.isPaused.get() !== undefined) return Number.POSITIVE_INFINITY
    const { at } = this.#sql.ready.get() as { at: number | null }
    return at === null ? Number.POSITIVE_INFINITY : Math.max(at, now)
  }

  /** Next deadline, possibly past (ms since the epoch). Infinity if nothing is expected. */
  deadlineAt(): number {
    const { at } = this.#sql.deadline.get() as { at: number | null }
    return at ?? Number.POSITIVE_INFINITY
  }

  override close(): void {
    this.isClosed = true
  }
}
