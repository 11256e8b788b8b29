import { WebhookError } from '../errors.ts'
import { checkNumbers, checkUnknown } from '../internal/check-options.ts'
import { Closing } from '../internal/closing.ts'
import type { Logger } from '../internal/logger.ts'
import type { MaybePromise } from '../internal/maybe-promise.ts'
import type {
  Acceptance,
  AcceptedEvent,
  AcceptOptions,
  CloseOptions,
  CloseReport,
  Inbox,
  InboxDefinition,
  InboxHost,
  UnfinishedEvent,
} from './inbox.ts'
import type { InboxStats, UnreadableDelivery } from './reading.ts'
import { defineInbox } from './shared/define-inbox.ts'
import { Handling } from './shared/handling.ts'
import { Jobs } from './shared/jobs.ts'
import { SqliteCleanUp } from './sqlite/clean-up.ts'
import { GroupCommit } from './sqlite/commits.ts'
import type { SqliteDatabase } from './sqlite/driver.ts'
import { type OwnedFile, ownDatabase, ownFile, usable } from './sqlite/file.ts'
import { shortHash } from './sqlite/hash.ts'
import { SqliteJob } from './sqlite/job.ts'
import { SqliteLedger } from './sqlite/ledger.ts'
import { OpenDeadLetters } from './sqlite/open-dead-letters.ts'
import { TakeUp } from './sqlite/take-up.ts'
import { type SqliteTransactional, SqliteTransactions } from './sqlite/transactions.ts'
import { SqliteUpkeep } from './sqlite/upkeep.ts'

export type { SqliteDatabase, SqliteStatement } from './sqlite/driver.ts'
export { type InboxFile, type InboxFileStats, openInboxFile } from './sqlite/inspection.ts'
export type { Synchronous } from './sqlite/synchronous.ts'
export type { SqliteTransactional } from './sqlite/transactions.ts'

/**
 * The options of `sqliteInbox`: either `path` or `database`, and limits.
 * @typeParam Database the type of `database`, which handlers write with in their transactions
 */
export interface SqliteInboxOptions<Database extends SqliteDatabase = SqliteDatabase> {
  /** The file, which is made if there is none. Use a local disk: network file systems lock unreliably. */
  readonly path?: string
  /**
   * A connection to use instead, of better-sqlite3 or with its interface. The inbox changes its settings, and does not
   * close it.
   */
  readonly database?: Database
  /**
   * The number of events that are handled at a time.
   * @defaultValue 16
   */
  readonly concurrency?: number
  /**
   * The number of events that may wait, those that wait for a retry included. Above it deliveries are answered 503.
   * @defaultValue 10_000
   */
  readonly maxWaiting?: number
  /**
   * The number of events that are kept as dead letters, the newest. Up to 1,000 unreadable deliveries are kept beside them.
   * @defaultValue 10_000
   */
  readonly maxDeadLetters?: number
  /**
   * The time for which event keys are remembered, in ms from the acceptance.
   * @defaultValue 86_400_000 (24 h)
   */
  readonly ttlMs?: number
}

type Limits = Required<Omit<SqliteInboxOptions, 'path' | 'database'>>

/**
 * An inbox in a SQLite file: acknowledged events survive the process and a power failure. The events that were waiting
 * or running when the process ended are handled by the next process that opens the file. One process at a time can. The
 * driver is node:sqlite, or libsql where Node has none. Handlers that write to the same file get `context.transaction`.
 *
 * ```ts
 * const receiver = createReceiver({ verify, inbox: sqliteInbox({ path: '/var/lib/app/events.db' }) })
 * receiver.on('encoding.finished', async (event, { transaction }) => {
 *   await transaction((database) => database.prepare('INSERT INTO finished VALUES (?)').run(event.mediaId))
 * })
 * ```
 * @throws WebhookError `invalid_option`; opening it throws `unavailable` when the file cannot be used
 */
export function sqliteInbox<Database extends SqliteDatabase = SqliteDatabase>(
  options: SqliteInboxOptions<Database>,
): InboxDefinition<SqliteTransactional<Database>> {
  const { path, database, concurrency = 16, ...rest } = options
  const { maxWaiting = 10_000, maxDeadLetters = 10_000, ttlMs = 86_400_000, ...unknown } = rest
  checkUnknown('sqliteInbox', unknown)
  const limits = { concurrency, maxWaiting, maxDeadLetters, ttlMs }
  checkNumbers('sqliteInbox', limits)
  const open = opener(path, database)
  return defineInbox({ name: 'sqliteInbox', storage: 'file', open: (host) => new SqliteInbox(host, open(), limits) })
}

function opener(path: string | undefined, database: SqliteDatabase | undefined): () => OwnedFile {
  if (path === undefined && typeof database?.prepare === 'function') return () => ownDatabase(database)
  // SQLite keeps a database with one of these names in memory.
  const isFile = typeof path === 'string' && path !== '' && path !== ':memory:'
  if (database === undefined && isFile) return () => ownFile(path)
  throw new WebhookError('invalid_option', 'sqliteInbox: give either the path of a file or a database')
}

class SqliteInbox implements Inbox {
  readonly deadLetters: OpenDeadLetters
  readonly #limits: Limits
  readonly #logger: Logger
  readonly #file: OwnedFile
  readonly #commits: GroupCommit
  // Waiting events are in memory too; the file is read when it is opened, and when another process has changed it.
  readonly #jobs = new Jobs<SqliteJob>()
  readonly #transactions: SqliteTransactions
  readonly #ledger: SqliteLedger
  readonly #handling: Handling<SqliteJob>
  readonly #takeUp: TakeUp
  readonly #upkeep: SqliteUpkeep
  readonly #closing = new Closing('the inbox is closing', (timeoutMs) => this.#close(timeoutMs))
  /** The number of events on their way to the disk. */
  #pending = 0

  constructor(host: InboxHost, file: OwnedFile, limits: Limits) {
    const { handle, logger } = host
    const { database, deadLetters, owner } = file
    this.#limits = limits
    this.#logger = logger
    this.#file = file
    this.#commits = new GroupCommit(database, owner, {
      // The events of a failed commit may be in the file all the same, and their next deliveries are duplicates then.
      onFailed: () => this.#upkeep.suspect(),
      onLost: (error) => this.#lose(error),
    })
    this.#transactions = new SqliteTransactions(this.#commits, file)
    this.#ledger = new SqliteLedger(this.#commits, file, logger)
    const { concurrency, maxDeadLetters } = limits
    this.#handling = new Handling({ handle, jobs: this.#jobs, ledger: this.#ledger, concurrency })
    this.#takeUp = new TakeUp({
      file,
      jobs: this.#jobs,
      handling: this.#handling,
      transactions: this.#transactions,
      logger,
      hasStopped: () => this.#closing.hasStarted || owner.isLost,
      lookAgain: () => this.#upkeep.suspect(),
    })
    this.deadLetters = new OpenDeadLetters(file, this.#commits, host, {
      checkOpen: () => this.#closing.checkOpen(),
      isFull: () => this.#isFull(),
      onReplayed: (row) => this.#takeUp.replayed(row),
    })
    this.#upkeep = new SqliteUpkeep({
      database,
      commits: this.#commits,
      cleanUp: new SqliteCleanUp(database, limits.ttlMs),
      deadLetters,
      maxDeadLetters,
      logger,
      onChanged: () => this.#lookInto(),
    })
    usable(file.path, () => this.#takeOver())
    this.#upkeep.start()
  }

  /** Takes up what an earlier process left, and looks for an event that made it crash. */
  #takeOver(): void {
    this.#file.events.bringForward()
    this.#takeUp.all()
    this.deadLetters.replayMarked()
    this.#ledger.investigate(this.#jobs, this.#limits.concurrency)
  }

  /** Finds what another process has changed: it may have replayed dead letters, or taken over the file. */
  #lookInto(): void {
    if (!this.#commits.isOwner()) return
    void this.#takeUp.missing()
    this.deadLetters.replayMarked()
  }

  accept(accepted: AcceptedEvent, { waitUntil }: AcceptOptions = {}): MaybePromise<Acceptance> {
    const { event, receivedAt } = accepted
    this.#closing.checkOpen()
    if (this.#jobs.get(event.key) !== undefined) return 'duplicate'
    if (this.#isFull()) return 'overloaded'
    const keyHash = this.#file.events.hashKey(event.key)
    const text = JSON.stringify(event)
    this.#pending++
    return this.#commits
      .add(() => this.#file.events.accept(keyHash, text, receivedAt))
      .then((row) => this.#committed(accepted, row, waitUntil))
      .finally(() => this.#pending--)
  }

  #committed(accepted: AcceptedEvent, row: number | undefined, waitUntil: AcceptOptions['waitUntil']): Acceptance {
    if (row === undefined) return 'duplicate'
    const job = new SqliteJob(accepted, row, this.#transactions)
    // The file keeps the event in any case. A server that waits, such as that of Next.js, does not cut its handlers off.
    waitUntil?.(job.ended())
    this.#jobs.add(job)
    this.#handling.add(job)
    return 'accepted'
  }

  #isFull(): boolean {
    return this.#jobs.size + this.#pending - this.#handling.running >= this.#limits.maxWaiting
  }

  keepUnreadable(unreadable: UnreadableDelivery): Promise<void> {
    this.#closing.checkOpen()
    const digest = shortHash(unreadable.body)
    return this.#commits.add(() => this.#file.deadLetters.addUnreadable(unreadable, digest))
  }

  stats(): InboxStats {
    return { ...this.#jobs.counts(), deadLetters: this.deadLetters.size }
  }

  /** Stops at once: another process handles the events of the file now. */
  #lose(error: WebhookError): void {
    this.#logger.error({ err: error }, 'the inbox has stopped: another process has opened its file')
    this.#stop(() => {})
    const leaseLost = new WebhookError('lease_lost', error.message)
    for (const job of [...this.#jobs]) {
      job.stop(leaseLost)
      this.#jobs.end(job, 'failed')
    }
  }

  #stop(giveUpRetries: () => void): void {
    this.#upkeep.stop()
    this.#ledger.stop()
    this.#handling.stop(giveUpRetries)
  }

  close(options?: CloseOptions): Promise<CloseReport> {
    return this.#closing.start(options)
  }

  /** Takes up events that are in the file only, because their commit seemed to fail: closing reports them too. */
  #lookOnce(): void {
    if (!this.#commits.isOwner()) return
    try {
      this.#takeUp.all()
    } catch {
      // The next process that opens the file finds it.
    }
  }

  /** Finishes what runs. Waiting events are safe in the file. */
  async #close(timeoutMs: number): Promise<CloseReport> {
    // The events of these commits wait too.
    await this.#commits.settle()
    this.#lookOnce()
    const unfinished: UnfinishedEvent[] = []
    this.#stop(() => unfinished.push(...this.#jobs.giveUp(['waiting', 'retrying'])))
    await this.#jobs.idle(timeoutMs)
    unfinished.push(...this.#jobs.giveUp())
    // Without this record the next process takes this one for crashed, which does no harm.
    this.#commits.add(() => this.#file.owner.release()).catch(() => {})
    await this.#commits.close()
    this.deadLetters.close()
    this.#file.close()
    if (unfinished.length > 0)
      this.#logger.info({ events: unfinished.length }, 'the inbox closed; these events wait in its file')
    return { unfinished }
  }
}
