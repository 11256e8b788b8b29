import { WebhookError } from '../../errors.ts'
import { toBase64 } from '../../internal/base64.ts'
import type { Logger } from '../../internal/logger.ts'
import { OutageLog } from '../../internal/outage-log.ts'
import type { ObjectStorage } from '../../storage/durable-objects.ts'
import { Closing } from '../closing.ts'
import { Jobs, releaseUnrecorded } from '../engine/jobs.ts'
import { PausableEngine } from '../engine/pausable-engine.ts'
import type {
  Acceptance,
  AcceptedEvent,
  CloseOptions,
  CloseReport,
  Inbox,
  InboxHost,
  UnfinishedEvent,
} from '../inbox.ts'
import { historyOf } from '../operations/event-query.ts'
import { StoredPauses } from '../operations/pauses.ts'
import type { EventRecord, InboxStats, OpenExpectation, UnreadableDelivery } from '../reading.ts'
import { countDeadLetters, keepUnreadable, type SqlDeadLetters } from '../sql/dead-letters.ts'
import { pauseTable, readPauses } from '../sql/pauses.ts'
import type { SyncTables } from '../sql/tables.ts'
import type { SqliteJob, Transactions } from '../sqlite-tables/job.ts'
import { eventsPerTurn } from '../sqlite-tables/load.ts'
import { OpenEvents } from '../sqlite-tables/open-events.ts'
import { Recovery } from '../sqlite-tables/recovery.ts'
import { openDeadLetters, parsingIn } from '../sqlite-tables/replay.ts'
import { SqliteSettling } from '../sqlite-tables/settle.ts'
import { tablesOver } from '../sqlite-tables/sql.ts'
import { type InboxLimits, roomForOverdue } from '../sqlite-tables/storage.ts'
import { ObjectAlarm } from './alarm.ts'
import { BoundedLoader } from './bounded-loader.ts'
import { ObjectCleanUp } from './clean-up.ts'
import { commitsOf, type ObjectCommits, type ObjectTables, openStorage } from './storage.ts'
import { objectTransactions } from './transactions.ts'

/** The pause before what is overdue is handed over while the inbox is full, and after a failure, in ms. */
const pauseMs = 5_000

/**
 * The inbox in a Durable Object: the SQLite inbox over the object's storage. It differs where the platform does: writes are
 * synchronous, no other process writes, and alarms take the place of a process that is always there.
 */
export class ObjectInbox implements Inbox {
  readonly deadLetters: SqlDeadLetters
  readonly events: OpenEvents
  readonly pauses: StoredPauses
  readonly #limits: InboxLimits
  readonly #logger: Logger
  readonly #effectsOf: InboxHost['expectations']
  readonly #file: ObjectTables
  readonly #commits: ObjectCommits
  readonly #tables: SyncTables
  readonly #jobs = new Jobs<SqliteJob>()
  readonly #alarm: ObjectAlarm
  readonly #recovery: Recovery
  readonly #settling: SqliteSettling
  readonly #engine: PausableEngine<SqliteJob>
  readonly #loader: BoundedLoader
  readonly #cleanUp: ObjectCleanUp
  readonly #closing = new Closing('the inbox is closing', (timeoutMs) => this.#close(timeoutMs))
  #isClosed = false

  constructor(host: InboxHost, storage: ObjectStorage, limits: InboxLimits) {
    const { handle, logger, expectations } = host
    this.#limits = limits
    this.#logger = logger
    this.#effectsOf = expectations
    const file = openStorage(storage)
    this.#file = file
    this.#commits = commitsOf(storage)
    this.#tables = tablesOver(file.sql, {
      hashKey: file.events.hashKey,
      checkOpen: () => this.#checkReadable(),
      commit: (write) => this.#commits.add(write),
    })
    const transactions: Transactions = objectTransactions(storage.sql, this.#commits, file.events)
    this.#alarm = new ObjectAlarm(
      storage,
      this.#jobs,
      () => this.#engine.isPaused,
      () => this.#storeDue(),
      () => this.#loader.fill(),
      logger,
    )
    this.#recovery = new Recovery({
      owner: file.owner,
      commits: this.#commits,
      logger,
      start: (job) => this.#engine.add(job),
    })
    const ended = (job: SqliteJob) => this.#ended(job)
    this.#settling = new SqliteSettling(this.#commits, file, host, new OutageLog(), this.#recovery, ended)
    const { concurrency } = limits
    this.#engine = new PausableEngine({ handle, jobs: this.#jobs, settling: this.#settling, concurrency })
    this.#cleanUp = new ObjectCleanUp(file, this.#tables, this.#commits, limits, logger)
    this.#loader = new BoundedLoader({
      file,
      commits: this.#commits,
      jobs: this.#jobs,
      engine: this.#engine,
      recovery: this.#recovery,
      transactions,
      logger,
      hasStopped: () => this.#closing.hasStarted,
      concurrency,
    })
    this.deadLetters = this.#openDeadLetters(host)
    this.events = new OpenEvents(file, {
      jobs: this.#jobs,
      engine: this.#engine,
      settling: this.#settling,
      onRetry: () => this.#alarm.update(),
      loader: this.#loader,
    })
    this.pauses = new StoredPauses(pauseTable(this.#tables), {
      host,
      obey: (all) => {
        this.#engine.obey(all)
        this.#alarm.update()
      },
    })
    this.pauses.take(readPauses(this.#tables))
    this.#loader.fill()
    this.#recovery.hasAll()
    this.#alarm.expect(file.events.expectations.nextAt())
    this.#alarm.update()
  }

  #openDeadLetters(host: InboxHost): SqlDeadLetters {
    const inbox = {
      checkOpen: () => this.#closing.checkOpen(),
      isFull: () => this.#isFull(),
      replayed: (row: number) => {
        this.#loader.replayed(row)
        this.#alarm.expect(this.#file.events.expectations.nextAt())
        this.#alarm.guard()
      },
    }
    return openDeadLetters(this.#tables, inbox, parsingIn(this.#file, this.#commits, host))
  }

  /** Synchronous: no other delivery comes in between. */
  accept(accepted: AcceptedEvent): Acceptance {
    this.#closing.checkOpen()
    if (this.#jobs.get(accepted.event.key) !== undefined) return 'duplicate'
    if (this.#isFull()) return 'overloaded'
    const { events } = this.#file
    const effects = this.#effectsOf?.(accepted)
    const written = events.write(accepted, effects)
    const row = this.#commits.now(() => events.accept(written))
    if (row === undefined) return 'duplicate'
    for (const { dueAt } of effects?.begins ?? []) this.#alarm.expect(dueAt.getTime())
    this.#alarm.guard()
    this.#loader.accepted(accepted, row, written.event.length)
    this.#cleanUp.turn()
    return 'accepted'
  }

  /** Called when an event has been handled, or is a dead letter. */
  #ended(job: SqliteJob): void {
    this.#loader.ended(job)
    if (this.#jobs.size === 0 && this.#loader.isOver) this.#alarm.clear()
    this.#cleanUp.turn()
  }

  /** Makes events of some of what is overdue, and returns the time at which to continue. */
  #storeDue(): number {
    const { events } = this.#file
    const limit = Math.min(eventsPerTurn, roomForOverdue(this.#limits, this.#waiting))
    try {
      if (limit <= 0) return Date.now() + pauseMs
      for (const row of this.#commits.now(() => events.acceptDue(limit))) this.#loader.replayed(row)
      return events.expectations.nextAt()
    } catch (error) {
      this.#logger.warn({ err: error }, 'the inbox could not hand over what is overdue yet')
      return Date.now() + pauseMs
    }
  }

  #isFull(): boolean {
    return this.#jobs.isFull(this.#waiting, this.#limits.maxWaiting)
  }

  /** The number of events that wait, for a slot or for a retry. */
  get #waiting(): number {
    return this.#jobs.size + this.#loader.left - this.#engine.running
  }

  async keepUnreadable(unreadable: UnreadableDelivery): Promise<void> {
    this.#closing.checkOpen()
    const digest = await crypto.subtle.digest('SHA-256', unreadable.body as Uint8Array<ArrayBuffer>)
    // Half of it in base64url, as in the file of the SQLite inbox.
    const text = toBase64(new Uint8Array(digest, 0, 16))
      .replaceAll('+', '-')
      .replaceAll('/', '_')
      .slice(0, 22)
    await keepUnreadable(this.#tables, unreadable, text, this.#logger)
    this.#cleanUp.turn()
  }

  stats(): InboxStats {
    const { expectations } = this.#file.events
    return { ...this.#loader.counts(), deadLetters: countDeadLetters(this.#tables), ...expectations.counts() }
  }

  expected(limit?: number): readonly OpenExpectation[] {
    this.#closing.checkOpen()
    return this.#file.events.expectations.list(limit)
  }

  history(mediaId: string): Promise<readonly EventRecord[]> {
    return historyOf(this.events, mediaId)
  }

  /** Called when the object's alarm has fired. Resolves when the work that is due is done. */
  alarm(): Promise<void> {
    return this.#alarm.ring(() => this.#closing.hasStarted)
  }

  #checkReadable(): void {
    if (this.#isClosed) throw new WebhookError('closing', 'the inbox is closed')
  }

  close(options?: CloseOptions): Promise<CloseReport> {
    return this.#closing.start(options)
  }

  /** Finishes what runs. The rest is safe in the storage; the alarm stays set for it. */
  async #close(timeoutMs: number): Promise<CloseReport> {
    const unfinished: UnfinishedEvent[] = []
    this.#recovery.stop()
    this.#engine.stop(() => unfinished.push(...this.#jobs.release(['waiting', 'retrying'])))
    await this.#jobs.idle(timeoutMs)
    unfinished.push(...this.#jobs.release(['running']))
    unfinished.push(...releaseUnrecorded(this.#jobs, this.#logger))
    this.#isClosed = true
    this.events.close()
    if (unfinished.length > 0)
      this.#logger.info({ events: unfinished.length }, 'the inbox closed; these events wait in its storage')
    return { unfinished }
  }
}
