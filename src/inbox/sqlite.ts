import { WebhookError } from '../errors.ts'
import { checkNumbers } from '../internal/check-options.ts'
import { Closing } from '../internal/closing.ts'
import type { Logger } from '../internal/logger.ts'
import type { MaybePromise } from '../internal/maybe-promise.ts'
import type {
  Acceptance,
  AcceptedEvent,
  CloseOptions,
  CloseReport,
  Inbox,
  InboxDefinition,
  InboxHost,
  InboxStats,
  UnfinishedEvent,
  UnreadableDelivery,
} from './inbox.ts'
import { defineInbox } from './shared/define-inbox.ts'
import { Handling } from './shared/handling.ts'
import { Jobs } from './shared/jobs.ts'
import { SqliteCleanUp } from './sqlite/clean-up.ts'
import { GroupCommit } from './sqlite/commits.ts'
import type { SqliteDatabase } from './sqlite/driver.ts'
import { hashKey } from './sqlite/events.ts'
import { openFile, type SqliteFile, usable, useDatabase } from './sqlite/file.ts'
import { SqliteJob } from './sqlite/job.ts'
import { SqliteLedger } from './sqlite/ledger.ts'
import { OpenDeadLetters } from './sqlite/open-dead-letters.ts'
import { SqliteUpkeep } from './sqlite/upkeep.ts'

export type { SqliteDatabase, SqliteStatement } from './sqlite/driver.ts'
export { type InboxFile, type InboxFileStats, openInboxFile } from './sqlite/inspection.ts'

/** The options of `sqliteInbox`: either `path` or `database`, and limits. */
export interface SqliteInboxOptions {
  /** The file, which is made if there is none. Use a local disk: network file systems lock unreliably. */
  readonly path?: string
  /**
   * A connection to use instead, of better-sqlite3 or with its interface. The inbox changes its settings, and does not
   * close it.
   */
  readonly database?: SqliteDatabase
  /**
   * How many events are handled at a time.
   * @defaultValue 16
   */
  readonly concurrency?: number
  /**
   * How many events may wait, those that wait for a retry included. Above it deliveries are answered 503.
   * @defaultValue 10_000
   */
  readonly maxWaiting?: number
  /**
   * How many events are kept as dead letters, the newest. Up to 1,000 unreadable deliveries are kept beside them.
   * @defaultValue 10_000
   */
  readonly maxDeadLetters?: number
  /**
   * How long event keys are remembered, in ms from the acceptance.
   * @defaultValue 86_400_000 (24 h)
   */
  readonly ttlMs?: number
}

type Limits = Required<Omit<SqliteInboxOptions, 'path' | 'database'>>

/**
 * An inbox in a SQLite file: acknowledged events survive the process and a power failure. The events that were waiting
 * or running when the process ended are handled by the next process that opens the file. One process at a time can. The
 * driver is node:sqlite, or libsql where Node has none.
 *
 * ```ts
 * const receiver = createReceiver({ verify, inbox: sqliteInbox({ path: '/var/lib/app/events.db' }) })
 * ```
 * @throws WebhookError `invalid_option`; opening it throws `unavailable` when the file cannot be used
 */
export function sqliteInbox(options: SqliteInboxOptions): InboxDefinition {
  const { path, database, concurrency = 16, maxWaiting = 10_000, maxDeadLetters = 10_000, ttlMs = 86_400_000 } = options
  const limits = { concurrency, maxWaiting, maxDeadLetters, ttlMs }
  checkNumbers('sqliteInbox', limits)
  const open = opener(path, database)
  return defineInbox({ name: 'sqliteInbox', open: (host) => new SqliteInbox(host, open(), limits) })
}

function opener(path: string | undefined, database: SqliteDatabase | undefined): () => SqliteFile {
  if (path === undefined && typeof database?.prepare === 'function') return () => useDatabase(database)
  // SQLite keeps a database with one of these names in memory.
  const isFile = typeof path === 'string' && path !== '' && path !== ':memory:'
  if (database === undefined && isFile) return () => openFile(path, { exclusive: true })
  throw new WebhookError('invalid_option', 'sqliteInbox: give either the path of a file or a database')
}

class SqliteInbox implements Inbox {
  readonly deadLetters: OpenDeadLetters
  readonly #maxWaiting: number
  readonly #logger: Logger
  readonly #file: SqliteFile
  readonly #commits: GroupCommit
  // Waiting events are in memory too; the file is read when it is opened, and when another process has changed it.
  readonly #jobs = new Jobs<SqliteJob>()
  readonly #handling: Handling<SqliteJob>
  readonly #upkeep: SqliteUpkeep
  readonly #closing = new Closing('the inbox is closing', (timeoutMs) => this.#close(timeoutMs))
  /** The number of events on their way to the disk. */
  #pending = 0

  constructor(host: InboxHost, file: SqliteFile, { concurrency, maxWaiting, maxDeadLetters, ttlMs }: Limits) {
    const { handle, logger } = host
    const { database, deadLetters } = file
    this.#maxWaiting = maxWaiting
    this.#logger = logger
    this.#file = file
    // The events of a failed commit may be in the file all the same, and their next deliveries are duplicates then.
    this.#commits = new GroupCommit(database, () => this.#upkeep.suspect())
    const ledger = new SqliteLedger(this.#commits, file, logger)
    this.#handling = new Handling({ handle, jobs: this.#jobs, ledger, concurrency })
    this.deadLetters = new OpenDeadLetters(file, host, {
      checkOpen: () => this.#closing.checkOpen(),
      isFull: () => this.#isFull(),
      onReplayed: () => this.#takeUp(),
    })
    const cleanUp = new SqliteCleanUp(database, ttlMs)
    const onChanged = () => this.#lookInto()
    this.#upkeep = new SqliteUpkeep({ database, cleanUp, deadLetters, maxDeadLetters, logger, onChanged })
    usable(file.path, () => this.#lookInto())
    this.#upkeep.start()
  }

  /** Finds what another process left in the file, before it crashed or by replaying dead letters. */
  #lookInto(): void {
    this.#takeUp()
    this.deadLetters.replayMarked()
  }

  /** Adds the events of the file that are not in memory. */
  #takeUp(): void {
    const held = new Set(Array.from(this.#jobs, ({ row }) => row))
    for (const stored of this.#file.events.waiting(held)) {
      const { row, event, receivedAt } = stored
      const job = new SqliteJob({ event, receivedAt }, row, stored)
      this.#jobs.add(job)
      const delayMs = stored.dueAt - Date.now()
      if (delayMs > 0) this.#handling.addLater(job, delayMs)
      else this.#handling.add(job)
    }
  }

  accept(accepted: AcceptedEvent): MaybePromise<Acceptance> {
    const { event, receivedAt } = accepted
    this.#closing.checkOpen()
    if (this.#jobs.get(event.key) !== undefined) return 'duplicate'
    if (this.#isFull()) return 'overloaded'
    const keyHash = hashKey(event.key)
    const text = JSON.stringify(event)
    this.#pending++
    return this.#commits
      .add(() => this.#file.events.accept(keyHash, text, receivedAt))
      .then((row) => this.#committed(accepted, row))
      .finally(() => this.#pending--)
  }

  #committed(accepted: AcceptedEvent, row: number | undefined): Acceptance {
    if (row === undefined) return 'duplicate'
    const job = new SqliteJob(accepted, row)
    this.#jobs.add(job)
    this.#handling.add(job)
    return 'accepted'
  }

  #isFull(): boolean {
    return this.#jobs.size + this.#pending - this.#handling.running >= this.#maxWaiting
  }

  keepUnreadable(unreadable: UnreadableDelivery): Promise<void> {
    this.#closing.checkOpen()
    return this.#commits.add(() => this.#file.deadLetters.addUnreadable(unreadable))
  }

  stats(): InboxStats {
    return { ...this.#jobs.counts(), deadLetters: this.deadLetters.size }
  }

  close(options?: CloseOptions): Promise<CloseReport> {
    return this.#closing.start(options)
  }

  /** Finishes what runs. Waiting events are safe in the file. */
  async #close(timeoutMs: number): Promise<CloseReport> {
    this.#upkeep.stop()
    this.#commits.flush()
    // By the next turn of the microtask queue the events of that commit wait too.
    await undefined
    const unfinished: UnfinishedEvent[] = []
    this.#handling.stop(() => unfinished.push(...this.#jobs.giveUp(['waiting', 'retrying'])))
    await this.#jobs.idle(timeoutMs)
    unfinished.push(...this.#jobs.giveUp())
    this.#commits.close()
    this.deadLetters.close()
    this.#file.close()
    if (unfinished.length > 0)
      this.#logger.info({ events: unfinished.length }, 'the inbox closed; these events wait in its file')
    return { unfinished }
  }
}
