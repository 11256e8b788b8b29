import { WebhookError } from '../../errors.ts'
import { isPromise, type MaybePromise, measure } from '../../internal/maybe-promise.ts'
import { OutageLog } from '../../internal/outage-log.ts'
import { sleep } from '../../internal/timers.ts'
import type { InboxHost } from '../inbox.ts'
import type { ReplayParsing, Replays } from '../sql/dead-letters.ts'
import type { HeldEvent } from '../sql/event.ts'
import type { EventReading, OwnJobs } from '../sql/event-reading.ts'
import { writeHandled } from '../sql/handled-record.ts'
import type { Reason } from '../sql/signal.ts'
import type { ClaimRequest, ClaimResult, EventStore, NewEvent, Settled, StoreListener } from '../sql/store.ts'
import type { SyncTables } from '../sql/tables.ts'
import { eventsPerTurn, SqliteClaims } from './claims.ts'
import { SqliteCleanUp } from './clean-up.ts'
import { isBusy } from './database.ts'
import { sqliteReading } from './event-reading.ts'
import type { WrittenEvent } from './events.ts'
import type { OwnerRow } from './owner-row.ts'
import { putBack, replaceIn } from './replay.ts'
import { tablesOver } from './sql.ts'
import { prepareClaims } from './statements.ts'
import type { Commits, InboxLimits, SqliteTables } from './storage.ts'
import { UnfinishedCount } from './unfinished.ts'

export interface SqliteStoreOptions {
  readonly storage: SqliteTables
  readonly commits: Commits
  readonly owner: OwnerRow
  readonly transact: EventStore['transact']
  readonly limits: InboxLimits
  readonly host: InboxHost
  readonly process?: string
  readonly readAhead: number
  readonly maxBytes: number
  /** True to count the unfinished events in one turn. The first accept is then synchronous. */
  readonly countsAtOnce?: boolean
}

export const cleanUpMs = { usual: 500, busy: 20 }

/** Rows counted per event-loop turn: one or two milliseconds. */
const rowsPerTurn = 2_000

/** Delay before overdue expectations are retried, while the inbox is full (ms). */
const fullRetryMs = 1_000

/** Delay before the start is retried, while the tables can't be read (ms). */
const startRetryMs = 1_000

/** Store over SQLite tables that one process at a time opens: a file, or a Durable Object's storage. */
export class SqliteStore implements EventStore {
  readonly replays: Replays
  readonly replace: ReplayParsing['replace']
  readonly tables: SyncTables
  readonly reading: EventReading
  readonly claimSize = 256
  readonly readAhead: number
  readonly maxUnrecorded = 64
  readonly isNotified = true
  readonly isQuiet = false
  readonly hasExpired = false
  readonly pollMs: number = 60_000
  readonly maxBytes: number
  readonly isTransient = isBusy
  protected readonly options: SqliteStoreOptions
  protected listener: StoreListener | undefined
  readonly #claims: SqliteClaims
  readonly #cleanUp: SqliteCleanUp
  readonly #sql: ReturnType<typeof prepareClaims>
  readonly #unfinished: UnfinishedCount
  /** Number of events being committed. */
  #pending = 0
  #isClosed = false

  constructor(options: SqliteStoreOptions) {
    const { storage, commits, owner, limits, host, readAhead, maxBytes, countsAtOnce = false } = options
    this.options = options
    this.readAhead = readAhead
    this.maxBytes = maxBytes
    this.tables = tablesOver(storage.sql, {
      hashKey: storage.events.hashKey,
      checkOpen: () => this.#checkOpen(),
      commit: (write) => commits.add(write),
      changed: (signal) => this.listener?.heard(signal),
    })
    const { process } = options
    this.reading = {
      ...sqliteReading(this.tables),
      ...(process !== undefined && { process }),
      counts: (jobs) => this.#counts(jobs),
    }
    this.#claims = new SqliteClaims({ tables: storage, commits, owner, logger: host.logger, maxBytes })
    this.#cleanUp = new SqliteCleanUp(storage.database, limits.ttlMs)
    this.#sql = prepareClaims(storage.database)
    this.replays = {
      putBack,
      // One, to give replays from other processes a turn.
      maxCommit: 1,
      check: () => {
        if (this.#isFull()) throw new WebhookError('overloaded', 'too many events are waiting')
      },
      replayed: (id) => {
        this.#unfinished.stored(id as number)
        this.listener?.heard('due')
      },
    }
    this.replace = replaceIn(storage, commits, host)
    this.#unfinished = new UnfinishedCount(storage.database, countsAtOnce ? Number.MAX_SAFE_INTEGER : rowsPerTurn)
    // Fails here, not later, if the tables can't be read.
    this.#unfinished.finish()
  }

  open(opened: (tables: SyncTables) => Promise<void>): void {
    void this.#start(opened)
  }

  async #start(opened: (tables: SyncTables) => Promise<void>): Promise<void> {
    const outage = new OutageLog()
    while (!this.#isClosed) {
      try {
        return await opened(this.tables)
      } catch (error) {
        outage.failed(() =>
          this.options.host.logger.error({ err: error }, 'the inbox could not start, and tries again'),
        )
        await sleep(startRetryMs)
      }
    }
  }

  async ready(): Promise<void> {
    await this.#unfinished.finish()
  }

  protected get isEmpty(): boolean {
    return this.#unfinished.number === 0
  }

  protected deadlineAt(): number {
    return this.options.storage.events.expectations.nextAt()
  }

  /** When an event can continue (ms since the epoch), now at the earliest. Infinity if none can. */
  protected workAt(): number {
    const { running = 0, isPaused = false } = this.listener?.load() ?? {}
    if (running > 0) return Date.now()
    if (isPaused) return Number.POSITIVE_INFINITY
    const { retrying, next } = this.#sql.retries.get(Date.now()) as { retrying: number; next: number | null }
    const canStart = this.#unfinished.number - this.#claims.unreadable - retrying
    return canStart > 0 ? Date.now() : (next ?? Number.POSITIVE_INFINITY)
  }

  #isFull(): boolean {
    const unfinished = this.#unfinished.number + this.#pending - this.options.commits.deferred
    const { maxWaiting } = this.options.limits
    // Without a listener nothing runs yet.
    return this.listener?.isFull(unfinished, maxWaiting) ?? unfinished >= maxWaiting
  }

  accept(event: NewEvent): MaybePromise<boolean> {
    const counting = this.#unfinished.finish()
    if (counting !== undefined) return counting.then(() => this.accept(event))
    if (this.#isFull()) throw new WebhookError('overloaded', 'too many events are waiting')
    const { storage, commits, host } = this.options
    const written = storage.events.write(event.accepted, event.changes)
    this.#pending++
    const stored = (id: number | undefined) => {
      this.#pending--
      return this.#accepted(event, written, id)
    }
    const id = measure(host.measured, 'commit', () => commits.accept(written))
    if (!isPromise(id)) return stored(id)
    return id.then(stored, (error) => {
      this.#pending--
      throw error
    })
  }

  #accepted({ accepted }: NewEvent, { event }: WrittenEvent, id: number | undefined): boolean {
    if (id === undefined) return false
    this.#unfinished.stored(id)
    const isOurs = this.options.commits.isOwner()
    const hasRoom = (this.listener?.load().bytes ?? 0) < this.maxBytes
    if (isOurs && hasRoom && this.#claims.handOver(id))
      this.listener?.handOver({ id, releases: 0, accepted, attempts: 0, completed: [], crashes: 0, size: event.length })
    else {
      this.#claims.stored(id)
      this.listener?.stored()
    }
    return true
  }

  async accepted(): Promise<void> {
    try {
      await this.#unfinished.finish()
    } catch {
      // Callers that waited for the count were rejected.
    }
  }

  async acceptDue(): Promise<number> {
    const { storage, commits, limits } = this.options
    const { expectations } = storage.events
    await this.#unfinished.finish()
    // Deliveries get the other half of the room.
    const waiting = this.#unfinished.number - (this.listener?.load().running ?? 0)
    const room = Math.ceil(limits.maxWaiting / 2) - waiting
    if (room <= 0) return fullRetryMs
    const limit = Math.min(eventsPerTurn, room)
    if (expectations.nextAt() <= Date.now()) {
      const stored = await commits.add(() => storage.events.acceptDue(limit))
      for (const id of stored) {
        this.#unfinished.stored(id)
        this.#claims.stored(id)
      }
      if (stored.length > 0) this.listener?.stored()
    }
    return Math.max(0, expectations.nextAt() - Date.now())
  }

  claim(ask: () => ClaimRequest): Promise<ClaimResult> {
    return this.#claims.claim(ask)
  }

  widenNextClaim(_reason: Reason): void {
    // Changes by others are due.
  }

  async keepOnly(_held: readonly HeldEvent[]): Promise<void> {
    this.#claims.startOver()
  }

  /** Forgets positions and counts. For changes by other processes, and commits that may have succeeded after all. */
  protected startOver(): void {
    this.#claims.startOver()
    this.#unfinished.startOver()
  }

  async settle(end: Settled): Promise<boolean> {
    const { commits, storage } = this.options
    const { events, deadLetters } = storage
    const id = end.job.id as number
    if (end.kind === 'progress') {
      await commits.add(() => events.complete(id, end.completed))
    } else if (end.kind === 'handled') {
      const record = writeHandled(end.job, end.handlers)
      // Deferrable: after a crash the handlers run again, as they would anyway. The end of a suspect isn't, since the
      // next one waits for it.
      await commits.add(() => events.handled(id, record), { canWait: !end.job.isSuspect })
      this.#unfinished.ended(id)
    } else if (end.kind === 'dead') {
      await commits.add(() => {
        const completed = events.allCompleted(id, end.completed)
        events.remove(id)
        deadLetters.add(id, end.job.key, completed, end.letter)
      })
      this.#unfinished.ended(id)
    } else {
      const { delayMs, completed } = end
      const isRetry = end.kind === 'retry'
      const earlier = end.job.number - 1
      const changed = isRetry ? { failed: end.failed, attempts: earlier + end.counts } : { attempts: earlier }
      await commits.add(() => {
        events.delay(id, { delayMs, completed, ...changed, isHealthy: isRetry })
        this.#claims.ended(id)
      })
    }
    if (this.#claims.endsRecovery()) this.listener?.stored()
    return true
  }

  transact: EventStore['transact'] = (attempt, scope, run) => this.options.transact(attempt, scope, run)

  async begin(listener: StoreListener): Promise<void> {
    this.listener = listener
  }

  get holds(): boolean {
    return this.options.commits.isOwner()
  }

  async end(): Promise<void> {
    // If this isn't recorded, the next process assumes a crash, which does no harm.
    await this.options.commits.add(() => this.options.owner.release()).catch(() => {})
  }

  async expire(): Promise<number> {
    const { commits, storage, limits, host } = this.options
    const hasMore = await storage.deadLetters.trim(this.tables, limits.maxDeadLetters, host.logger)
    const { isSooner, hasMoreExpired } = await commits.add(() => ({
      isSooner: this.#cleanUp.correctDelays(),
      hasMoreExpired: this.#cleanUp.step(),
    }))
    if (isSooner) this.listener?.heard('due')
    return hasMoreExpired || hasMore ? cleanUpMs.busy : cleanUpMs.usual
  }

  #counts(jobs: OwnJobs | undefined): ReturnType<NonNullable<EventReading['counts']>> {
    const counting = this.#unfinished.finish()
    if (counting !== undefined) return counting.then(() => this.#counts(jobs))
    const { running = 0, oldestWaitingAt = this.#oldestLeft() } = jobs?.counts() ?? {}
    const { retrying } = this.#sql.retries.get(Date.now()) as { retrying: number }
    const waiting = Math.max(0, this.#unfinished.number - running - retrying - this.#claims.unreadable)
    return { waiting, running, retrying, ...(waiting > 0 && oldestWaitingAt !== undefined && { oldestWaitingAt }) }
  }

  #oldestLeft(): Date | undefined {
    const since = this.#claims.oldestLeft()
    return since === undefined ? undefined : new Date(since)
  }

  #checkOpen(): void {
    if (this.#isClosed) throw new WebhookError('closing', 'the inbox is closed')
  }

  close(): MaybePromise<void> {
    this.#isClosed = true
    this.#unfinished.stop()
  }
}
