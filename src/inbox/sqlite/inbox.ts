import { randomUUID } from 'node:crypto'
import { WebhookError } from '../../errors.ts'
import { type MaybePromise, measure } from '../../internal/maybe-promise.ts'
import { OutageLog } from '../../internal/outage-log.ts'
import { processName } from '../../internal/process-name.ts'
import { Closing } from '../closing.ts'
import { Jobs, releaseUnrecorded } from '../engine/jobs.ts'
import { PausableEngine } from '../engine/pausable-engine.ts'
import type {
  Acceptance,
  AcceptedEvent,
  AcceptOptions,
  CloseOptions,
  CloseReport,
  Inbox,
  InboxHost,
  UnfinishedEvent,
} from '../inbox.ts'
import { StoredActivity } from '../operations/activity.ts'
import { historyOf } from '../operations/event-query.ts'
import { StoredPauses } from '../operations/pauses.ts'
import type { ActivityMinute, EventRecord, InboxStats, OpenExpectation, UnreadableDelivery } from '../reading.ts'
import { activityTable } from '../sql/activity.ts'
import { countDeadLetters, keepUnreadable, type SqlDeadLetters } from '../sql/dead-letters.ts'
import { pauseTable, readPauses } from '../sql/pauses.ts'
import type { SyncTables } from '../sql/tables.ts'
import { SqliteCleanUp } from '../sqlite-tables/clean-up.ts'
import { inTransaction } from '../sqlite-tables/database.ts'
import { SqliteJob } from '../sqlite-tables/job.ts'
import { OpenEvents } from '../sqlite-tables/open-events.ts'
import { Recovery } from '../sqlite-tables/recovery.ts'
import { openDeadLetters, parsingIn } from '../sqlite-tables/replay.ts'
import { SqliteSettling } from '../sqlite-tables/settle.ts'
import { tablesOver } from '../sqlite-tables/sql.ts'
import { type InboxLimits, roomForOverdue } from '../sqlite-tables/storage.ts'
import { GroupCommit } from './commits.ts'
import { Deadlines } from './deadlines.ts'
import { closedOnError, type OwnedFile, usable } from './file.ts'
import { shortHash } from './hash.ts'
import { StartLoader, type StartLoaderOptions } from './load-at-start.ts'
import { rememberOpen } from './openers.ts'
import { SqliteTransactions } from './transactions.ts'
import { SqliteUpkeep } from './upkeep.ts'

export class SqliteInbox implements Inbox {
  readonly deadLetters: SqlDeadLetters
  readonly events: OpenEvents
  readonly pauses: StoredPauses
  readonly #limits: InboxLimits
  readonly #host: InboxHost
  readonly #file: OwnedFile
  readonly #commits: GroupCommit
  // Waiting events are in memory too; the file is read after it is opened, and when another process has changed it.
  readonly #jobs = new Jobs<SqliteJob>()
  readonly #transactions: SqliteTransactions
  readonly #recovery: Recovery
  readonly #settling: SqliteSettling
  readonly #engine: PausableEngine<SqliteJob>
  readonly #loader: StartLoader
  readonly #deadlines: Deadlines
  readonly #tables: SyncTables
  readonly #activity: StoredActivity
  readonly #upkeep: SqliteUpkeep
  readonly #closing = new Closing('the inbox is closing', (timeoutMs) => this.#close(timeoutMs))
  #forgetOpen = () => {}
  /** The number of events on their way to the disk. */
  #pending = 0
  #isClosed = false

  constructor(host: InboxHost, file: OwnedFile, limits: InboxLimits) {
    const { handle, logger } = host
    const { database } = file
    const outage = new OutageLog()
    this.#host = host
    this.#limits = limits
    this.#file = file
    this.#commits = new GroupCommit(file, {
      // The events of a failed commit may be in the file anyway, and then their next deliveries are duplicates.
      onFailed: () => this.#upkeep.readAgain(),
      onLost: (error) => this.#lose(error),
    })
    this.#transactions = new SqliteTransactions(this.#commits, file)
    this.#recovery = new Recovery({
      owner: file.owner,
      commits: this.#commits,
      logger,
      start: (job) => this.#engine.add(job),
    })
    this.#settling = new SqliteSettling(this.#commits, file, host, outage, this.#recovery)
    const { concurrency } = limits
    this.#engine = new PausableEngine({ handle, jobs: this.#jobs, settling: this.#settling, concurrency })
    this.#tables = tablesOver(file.sql, {
      hashKey: file.events.hashKey,
      checkOpen: () => this.#checkReadable(),
      commit: (write) => this.#commits.add(write),
    })
    this.pauses = new StoredPauses(pauseTable(this.#tables), { host, obey: (all) => this.#engine.obey(all) })
    this.#loader = new StartLoader(this.#loaderOptions())
    this.deadLetters = this.#openDeadLetters()
    this.#deadlines = new Deadlines({
      events: file.events,
      commits: this.#commits,
      logger,
      outage,
      room: () => roomForOverdue(limits, this.#waiting),
      onOverdue: (row) => this.#loader.replayed(row),
    })
    this.events = new OpenEvents(file, {
      jobs: this.#jobs,
      engine: this.#engine,
      settling: this.#settling,
      process: processName,
      loader: this.#loader,
    })
    this.#activity = new StoredActivity({
      ...activityTable(this.#tables, randomUUID()),
      failed: (error) => logger.warn({ err: error }, 'the inbox could not record its activity yet'),
    })
    this.#upkeep = new SqliteUpkeep({
      file,
      commits: this.#commits,
      cleanUp: new SqliteCleanUp(database, limits.ttlMs),
      trim: () => file.deadLetters.trim(this.#tables, limits.maxDeadLetters, logger),
      logger,
      outage,
      onChanged: () => this.#checkFile(),
    })
    this.#open()
  }

  #openDeadLetters(): SqlDeadLetters {
    const inbox = {
      checkOpen: () => this.#closing.checkOpen(),
      isFull: () => this.#isFull(),
      replayed: (row: number) => {
        this.#loader.replayed(row)
        void this.#deadlines.check()
      },
    }
    return openDeadLetters(this.#tables, inbox, parsingIn(this.#file, this.#commits, this.#host))
  }

  #loaderOptions(): StartLoaderOptions {
    const { owner } = this.#file
    return {
      file: this.#file,
      commits: this.#commits,
      jobs: this.#jobs,
      engine: this.#engine,
      recovery: this.#recovery,
      transactions: this.#transactions,
      logger: this.#host.logger,
      hasStopped: () => this.#closing.hasStarted || owner.isLost,
      checkAgain: () => this.#upkeep.readAgain(),
    }
  }

  #open(): void {
    const closeAll = () => {
      this.#stop()
      this.#file.close()
    }
    closedOnError(closeAll, () => usable(this.#file.path, () => this.#takeOver()))
    this.#forgetOpen = rememberOpen(this.#file.path, () => this.#handOver())
    // Until then it is not known how much room there is.
    void Promise.resolve(this.#loader.listing).then(() => this.#deadlines.check())
    this.#upkeep.start()
    this.#activity.start()
    this.#host.observe(this.#activity.recorder)
  }

  /** Loads what an earlier process left. */
  #takeOver(): void {
    this.pauses.take(readPauses(this.#tables))
    this.#loader.begin()
    void this.#replayMarked()
  }

  /** Finds what another process has changed: it may have replayed dead letters, or paused the inbox. */
  #checkFile(): void {
    this.pauses.take(readPauses(this.#tables))
    void this.#loader.missing()
    void this.#deadlines.check()
    void this.#replayMarked()
    void this.#loader.startAsked()
  }

  async #replayMarked(): Promise<void> {
    try {
      await this.deadLetters.replayMarked()
    } catch (error) {
      // They stay marked, and are found after the next change of another process, or when the file is opened.
      this.#host.logger.warn({ err: error }, 'unreadable deliveries could not be replayed yet')
    }
  }

  accept(accepted: AcceptedEvent, options: AcceptOptions = {}): MaybePromise<Acceptance> {
    this.#closing.checkOpen()
    if (this.#jobs.get(accepted.event.key) !== undefined) return 'duplicate'
    if (this.#isFull()) return 'overloaded'
    const { listing } = this.#loader
    if (listing !== undefined) return listing.then(() => this.accept(accepted, options))
    const { events } = this.#file
    const effects = this.#host.expectations?.(accepted)
    const accepting = events.write(accepted, effects)
    this.#pending++
    const stored = () => {
      this.#pending--
      for (const { dueAt } of effects?.begins ?? []) this.#deadlines.wait(dueAt.getTime())
      return this.#committed(accepted, accepting.row, options.waitUntil)
    }
    const failed = (error: unknown) => {
      this.#pending--
      throw error
    }
    const commit = () => this.#commits.add(() => events.acceptLater(accepting))
    return measure(this.#host.measured, 'commit', commit).then(stored, failed)
  }

  #committed(accepted: AcceptedEvent, row: number | undefined, waitUntil: AcceptOptions['waitUntil']): Acceptance {
    if (row === undefined) return 'duplicate'
    // The inbox that has the file now finds it there.
    if (this.#file.owner.isLost) return 'accepted'
    const job = new SqliteJob(accepted, row, this.#transactions)
    // The file keeps the event in any case. A server that waits, such as that of Next.js, does not cut its handlers off.
    waitUntil?.(job.result())
    this.#jobs.add(job)
    this.#loader.add(job)
    return 'accepted'
  }

  #isFull(): boolean {
    return this.#jobs.isFull(this.#waiting, this.#limits.maxWaiting)
  }

  /** The number of events that wait, for a slot or for a retry. */
  get #waiting(): number {
    // Those whose end waits for a commit have been handled.
    const handled = this.#engine.running + this.#commits.late
    return this.#loader.left + this.#jobs.size + this.#pending - handled
  }

  keepUnreadable(unreadable: UnreadableDelivery): Promise<void> {
    this.#closing.checkOpen()
    return keepUnreadable(this.#tables, unreadable, shortHash(unreadable.body), this.#host.logger)
  }

  stats(): MaybePromise<InboxStats> {
    const { listing } = this.#loader
    if (listing !== undefined) return listing.then(() => this.stats())
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

  async activity(since: Date): Promise<readonly ActivityMinute[]> {
    this.#closing.checkOpen()
    return this.#activity.since(since)
  }

  /** Stops immediately: another process handles the events of the file now, or it is gone. */
  #lose(error: WebhookError): void {
    this.#host.logger.error({ err: error }, 'the inbox has stopped: it has lost its file')
    this.#loseJobs(error)
    this.#file.rescueLog()
  }

  /** Stops immediately, and leaves the events to another inbox of this process. It finds them in the file. */
  #handOver(): void {
    const { path, owner, database } = this.#file
    const fix = 'after a hot reload the new one gets the deliveries; otherwise make one receiver for a file'
    const error = new WebhookError('unavailable', `another receiver of this process has opened ${path}: ${fix}`)
    this.#forgetOpen()
    this.#commits.giveUp(error)
    try {
      inTransaction(database, () => owner.release())
    } catch {
      // The other inbox takes this one for crashed, which does no harm.
    }
    owner.giveUp(error)
    const events = this.#jobs.size
    this.#loseJobs(error)
    this.#file.unlock()
    this.#host.logger.warn({ path, events }, 'the inbox handed its events over: this process has opened its file again')
  }

  #loseJobs(error: WebhookError): void {
    this.#stop()
    const leaseLost = new WebhookError('lease_lost', error.message)
    for (const job of [...this.#jobs]) {
      job.stop(leaseLost)
      this.#jobs.end(job, 'lost')
    }
  }

  #stop(releaseRetries?: () => void): void {
    this.#upkeep.stop()
    this.#deadlines.stop()
    this.#activity.stop()
    this.#recovery.stop()
    this.#engine.stop(releaseRetries)
  }

  #checkReadable(): void {
    if (this.#isClosed) throw new WebhookError('closing', 'the inbox is closed')
  }

  close(options?: CloseOptions): Promise<CloseReport> {
    return this.#closing.start(options)
  }

  /** Loads events that are in the file only, because their commit seemed to fail. Closing reports them also. */
  #checkOnce(): void {
    if (!this.#commits.isOwner()) return
    try {
      this.#loader.rest()
    } catch {
      // The next process that opens the file finds it.
    }
  }

  /** Finishes what runs. Waiting events are safe in the file. */
  async #close(timeoutMs: number): Promise<CloseReport> {
    // The events of these commits wait also.
    await this.#commits.settle()
    this.#checkOnce()
    const unfinished: UnfinishedEvent[] = []
    this.#stop(() => unfinished.push(...this.#jobs.release(['waiting', 'retrying'])))
    await this.#jobs.idle(timeoutMs)
    unfinished.push(...this.#jobs.release(['running']))
    // The numbers of the last seconds are all that can be lost here.
    this.#activity.finish().catch(() => {})
    // Without this record the next process takes this one for crashed, which does no harm.
    this.#commits.add(() => this.#file.owner.release()).catch(() => {})
    await this.#commits.close()
    unfinished.push(...releaseUnrecorded(this.#jobs, this.#host.logger))
    this.#isClosed = true
    this.events.close()
    this.#forgetOpen()
    this.#file.close()
    if (unfinished.length > 0)
      this.#host.logger.info({ events: unfinished.length }, 'the inbox closed; these events wait in its file')
    return { unfinished }
  }
}
