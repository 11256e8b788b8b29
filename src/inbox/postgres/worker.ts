import type { Pool } from 'pg'
import type { Countdown } from '../../internal/countdown.ts'
import type { Logger } from '../../internal/logger.ts'
import { nextTurn, type Timer, unref, within } from '../../internal/timers.ts'
import type { JobEnd } from '../engine/job.ts'
import { logReleased, releaseUnrecorded } from '../engine/jobs.ts'
import { OwedHandlers } from '../engine/owed-handlers.ts'
import { PausableEngine } from '../engine/pausable-engine.ts'
import { stopRun } from '../engine/stop-run.ts'
import type { InboxHost, UnfinishedEvent } from '../inbox.ts'
import type { Pause } from '../reading.ts'
import { type ClaimRequest, Claims, largestSize, type OwnClaims } from './claims.ts'
import { type Database, isUnreachable } from './database.ts'
import { Hearing } from './hearing.ts'
import { PostgresJob } from './job.ts'
import { PostgresJobs } from './jobs.ts'
import { hashMedia } from './keys.ts'
import { Lease } from './lease.ts'
import { Renewal } from './renewal.ts'
import { PostgresSettling } from './settle.ts'
import { transactions } from './transactions.ts'

export interface PostgresWorkerOptions {
  readonly database: Database
  readonly host: InboxHost
  readonly pool: Pool
  readonly concurrency: number
  readonly leaseMs: number
  /** The time for which keys are remembered (ms). */
  readonly ttlMs: number
  /** Maximum time between two checks for events, in ms, if no notification arrives. */
  readonly pollMs: number
  /** Returns `true` while notifications arrive. */
  readonly isNotified: () => boolean
}

/** The number of events of one media item at which no more of them are claimed. */
const maxOfMedia = 16

/** Maximum number of claimed events that wait in this process. */
const maxWaiting = 500

/** The pause after a failed claim, in ms. */
const pauseMs = 100

/** The number of failures in a row after which one is logged, and the time until the next log line, in ms. */
const tellingFailures = 3
const quietMs = 60_000

/** Maximum time that closing waits for Postgres after the handlers have ended, in ms. */
const releaseMs = 1_000

/**
 * Handles events in this process: it claims those that are due, runs them in order for each media item, and records the
 * results.
 */
export class PostgresWorker {
  readonly #options: PostgresWorkerOptions
  readonly #logger: Logger
  readonly #jobs = new PostgresJobs()
  readonly #lease: Lease
  readonly #claims: Claims
  readonly #hearing: Hearing
  readonly #settling: PostgresSettling
  readonly #engine: PausableEngine<PostgresJob>
  readonly #renewal: Renewal
  readonly #transact: ReturnType<typeof transactions>
  #claiming: Promise<void> | undefined
  #isAwake = false
  /** `false` once a claim has found all the events that this process could take. */
  #mayHaveMore = true
  /** The media items that the last claim skipped: this process has enough of their events, or a straggler holds them up. */
  #crowded: readonly string[] = []
  /** `true` if the answer to a claim was lost: this process may own events that it does not know. */
  #isUnsure = false
  #failures = 0
  #toldAt = Number.NEGATIVE_INFINITY
  #timer: Timer | undefined
  #state: 'starting' | 'open' | 'stopped' = 'starting'

  constructor(options: PostgresWorkerOptions) {
    const { database, host, pool, concurrency, leaseMs, ttlMs } = options
    this.#options = options
    this.#logger = host.logger
    this.#lease = new Lease(
      database,
      leaseMs,
      2 * concurrency,
      host.handlers,
      () => this.#jobs.longRunning(leaseMs / 3),
      () => this.#isCutOff(),
    )
    this.#claims = new Claims(database, this.#lease, concurrency, ttlMs)
    this.#hearing = new Hearing(
      () => this.#claims.processes,
      () => this.wake(),
    )
    const owed = new OwedHandlers(host, ttlMs, () => this.#lease.readHandlers())
    this.#settling = new PostgresSettling(database, host, owed, ttlMs)
    this.#engine = new PausableEngine({
      handle: host.handle,
      jobs: this.#jobs,
      settling: this.#settling,
      concurrency,
      freed: () => this.wake(),
      // While the ends of a claim are recorded, in one statement, the next claim can run.
      maxUnrecorded: largestSize,
    })
    this.#transact = transactions({
      pool,
      schema: database.schema,
      leaseMs,
      prepares: database.prepares,
      measured: host.measured,
    })
    this.#renewal = new Renewal({
      lease: this.#lease,
      leaseMs,
      logger: host.logger,
      renewed: () => {
        // It may have published new handlers.
        this.#claims.lookForAwaited()
        if (this.#isAwake) this.wake()
      },
      lost: () => this.#lost(),
      tookOver: () => this.wake(),
    })
  }

  /** `true` if no event waits or is claimed anywhere, and this process will hear of the next one. */
  get isQuiet(): boolean {
    return this.#claims.isQuiet && !this.#engine.isPaused && this.#options.isNotified()
  }

  /** `true` while the inbox or a handler is paused. */
  get hasPauses(): boolean {
    return this.#engine.hasPauses
  }

  /** The claims of this process, as it knows them itself. */
  claims(): OwnClaims {
    return { owner: this.#lease.id, started: this.#jobs.started() }
  }

  /** Stops the handler that runs for an event in this process. Returns `false` if none does. */
  stop(key: string): boolean {
    return stopRun(this.#jobs.get(key))
  }

  /** Stops the handler that runs for the event of a row. */
  stopRow(id: string): void {
    stopRun(this.#jobs.ofRow(id))
  }

  /**
   * Publishes the handlers of this process, if they have changed. Call it before another process can get an event that
   * owes them.
   */
  publish(): Promise<void> | undefined {
    return this.#lease.hasNewHandlers ? this.#options.database.reach(() => this.#lease.publish()) : undefined
  }

  has(key: string): boolean {
    return this.#jobs.get(key) !== undefined
  }

  async start(): Promise<void> {
    await this.#lease.register()
    this.#state = 'open'
    this.#renewal.start()
    this.wake()
  }

  /**
   * Looks for events, because some may have been accepted.
   * @param areOld `true` if they may have been accepted long ago
   */
  wake(areOld = false): void {
    if (areOld) this.#claims.lookBack()
    this.#isAwake = true
    this.#mayHaveMore = true
    if (this.#state !== 'open' || this.#lease.isOver || this.#claiming !== undefined) return
    this.#claiming = this.#claim().then(() => {
      this.#claiming = undefined
      if (this.#isAwake) this.wake()
    })
  }

  /** Looks for events soon, because another process has accepted some. */
  hear(): void {
    this.#hearing.hear()
  }

  /** Looks soon for the events that another process has released. */
  hearAwaited(): void {
    this.#claims.lookForAwaited()
    this.#hearing.hear()
  }

  /** Obeys the pauses of the inbox. While all of it is paused, this process claims nothing. */
  obey(pauses: readonly Pause[]): void {
    this.#engine.obey(pauses)
    this.wake(true)
  }

  /** Claims events until there are no more, or until it has enough. */
  async #claim(): Promise<void> {
    while (this.#isAwake && this.#state === 'open' && !this.#lease.isOver) {
      this.#isAwake = false
      const { isPaused } = this.#engine
      if (!isPaused && this.#room() === 0) break
      try {
        const nextInMs = await (isPaused ? this.#giveBack() : this.#claimSome())
        this.#wakeIn(nextInMs)
        this.#failures = 0
      } catch (error) {
        this.#isUnsure = true
        this.#tell(error)
        this.#wakeIn(pauseMs)
      }
    }
  }

  #tell(error: unknown): void {
    if (!isUnreachable(error)) return this.#logger.error({ err: error }, 'the inbox could not claim events')
    // A claim that always takes too long looks like an unreachable Postgres.
    if (++this.#failures < tellingFailures || performance.now() < this.#toldAt + quietMs) return
    this.#toldAt = performance.now()
    this.#logger.warn({ err: error }, 'the inbox could not claim events, and tries again')
  }

  /**
   * The number of events to claim. If a slot is free, the waiting events belong to the media items of running ones.
   * Otherwise nothing is claimed until most of the claimed ones have begun, so that a claim is worth its statement.
   */
  #room(): number {
    const { waiting } = this.#jobs.counts()
    const { running } = this.#engine
    const { size } = this.#claims
    if (running < this.#options.concurrency) return waiting < maxWaiting ? size : 0
    return waiting <= size / 4 ? Math.max(size - waiting - running, 0) : 0
  }

  /** Returns the time until the next check, in ms. */
  async #claimSome(): Promise<number> {
    const { pollMs } = this.#options
    await this.#becomeSure()
    const {
      owner,
      events,
      nextRetryInMs = pollMs,
      nextStepInMs,
      hasMore,
    } = await this.#claims.next(() => this.#request())
    // The events belong to a lease that has ended, or may have been released since.
    if (owner !== this.#lease.self) {
      this.#isUnsure = true
      this.#isAwake = true
      return pollMs
    }
    const jobs = events.map((event) => new PostgresJob(event, this.#lease, this.#transact))
    for (const job of jobs) this.#take(job)
    // The engine starts them in the next turn. Only then it is known which of them wait for a slot.
    if (jobs.length > 0) await nextTurn()
    // The events behind a suspect could not be claimed earlier than the suspect.
    this.#isAwake ||= jobs.some(isSuspect) || hasMore
    this.#mayHaveMore = this.#isAwake
    return Math.min(nextRetryInMs, nextStepInMs, pollMs)
  }

  #request(): ClaimRequest {
    const full = [...this.#jobs.ofEachMedia()].filter(([, count]) => count >= maxOfMedia).map(([lane]) => lane)
    this.#crowded = [...full, ...this.#engine.heldUpLanes()]
    return {
      limit: Math.max(this.#room(), 1),
      withSuspect: ![...this.#jobs].some(isSuspect),
      crowded: this.#crowded.map(hashMedia),
      held: this.#jobs.held(),
    }
  }

  /** Gives up the claimed events that have not started. Returns the time until the next check, in ms. */
  async #giveBack(): Promise<number> {
    const waiting = [...this.#jobs].filter(({ state }) => state === 'waiting')
    for (const job of waiting) this.#jobs.end(job, 'retried')
    this.#isUnsure ||= waiting.length > 0
    await this.#becomeSure()
    return this.#options.pollMs
  }

  /** Gives up the events that this process may own without knowing it. */
  async #becomeSure(): Promise<void> {
    if (!this.#isUnsure) return
    // Set first: the lease may end meanwhile.
    this.#isUnsure = false
    await this.#lease.releaseOthers(this.#jobs.held())
  }

  #take(job: PostgresJob): void {
    // The previous attempt was recorded, and its record is not confirmed yet.
    const previous = this.#jobs.get(job.key)
    if (previous !== undefined) this.#jobs.end(previous, 'retried')
    this.#jobs.add(job)
    if (this.#state === 'stopped') return
    this.#engine.add(job)
    void job.ended().then((end) => {
      if (end === 'lost') this.#isUnsure = true
      if (this.#mayClaimAfter(job, end)) this.wake()
    })
  }

  /** Returns `true` if the end of an event may be the reason that another one can be claimed. */
  #mayClaimAfter(job: PostgresJob, end: JobEnd): boolean {
    // A failed event waits to be claimed again. The next suspect waits for the end of this one.
    if (this.#mayHaveMore || end !== 'handled' || isSuspect(job)) return true
    return this.#crowded.includes(job.lane) && (this.#jobs.ofEachMedia().get(job.lane) ?? 0) < maxOfMedia
  }

  #wakeIn(ms: number): void {
    clearTimeout(this.#timer)
    this.#timer = setTimeout(() => {
      if (this.isQuiet) return this.#wakeIn(this.#options.pollMs)
      this.#claims.lookAround()
      this.wake()
    }, ms)
    unref(this.#timer)
  }

  /** The lease has run out by the clock of this process. Postgres may still have its row, and then these events. */
  #isCutOff(): void {
    this.#logger.warn(
      { events: this.#jobs.size },
      'the lease of this process ran out, because Postgres could not be reached; its handlers are stopped',
    )
    // Results that wait for Postgres are recorded if no process has taken their events over.
    this.#engine.giveUp([...this.#jobs].filter(({ state }) => state !== 'recording'))
    this.#isAwake = true
  }

  async #lost(): Promise<void> {
    const jobs = [...this.#jobs]
    this.#logger.warn({ events: jobs.length }, 'the lease of this process was lost; others may handle its events')
    this.#engine.giveUp(jobs)
    await this.#lease.register()
    this.wake()
  }

  /** Starts no more events, and waits for running ones. Call `release` afterwards. */
  async finish(left: Countdown): Promise<void> {
    this.#state = 'stopped'
    clearTimeout(this.#timer)
    this.#hearing.stop()
    this.#engine.stop(() => {})
    await within(left(), Promise.resolve(this.#claiming), () => {})
    this.#jobs.release(['claiming', 'waiting'])
    await this.#jobs.idle(left())
  }

  /** Releases the remaining events. */
  async release(left: Countdown): Promise<readonly UnfinishedEvent[]> {
    const unfinished = this.#jobs.release(['running'])
    // If Postgres is unreachable, the lease runs out.
    await within(left(releaseMs), this.#release(), () => {}).catch(() => {})
    logReleased(unfinished, this.#logger)
    return [...unfinished, ...releaseUnrecorded(this.#jobs, this.#logger)]
  }

  async #release(): Promise<void> {
    await this.#renewal.stop()
    await this.#settling.settle()
    await this.#lease.release()
  }
}

const isSuspect = ({ crashes }: PostgresJob): boolean => crashes > 0
