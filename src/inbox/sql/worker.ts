import { WebhookError } from '../../errors.ts'
import type { MediaEvent } from '../../events/media-service/catalogue.ts'
import type { Countdown } from '../../internal/countdown.ts'
import type { Logger } from '../../internal/logger.ts'
import { OutageLog } from '../../internal/outage-log.ts'
import { later, maxWaitMs, nextTurn, type Timer, unref, within } from '../../internal/timers.ts'
import type { JobEnd } from '../engine/job.ts'
import { logReleased, releaseUnrecorded } from '../engine/jobs.ts'
import { OwedHandlers } from '../engine/owed-handlers.ts'
import { PausableEngine } from '../engine/pausable-engine.ts'
import { stopRun } from '../engine/stop-run.ts'
import type { InboxHost, UnfinishedEvent } from '../inbox.ts'
import type { Pause } from '../reading.ts'
import { SqlJob } from './job.ts'
import { SqlJobs } from './jobs.ts'
import { Renewal } from './renewal.ts'
import { SqlSettling } from './settling.ts'
import type { Reason } from './signal.ts'
import type { Claimed, EventStore, StoreListener, Want } from './store.ts'
import type { SqlTables } from './tables.ts'

export interface SqlWorkerOptions {
  readonly store: EventStore
  readonly host: InboxHost
  readonly concurrency: number
}

/** Number of events of one media item at which no more of them are claimed. */
const maxPerMedia = 16

/** Retrying events that are read in one turn of the event loop, at the start. */
const retryingPerTurn = 200

/** Maximum number of held events that wait for the limit of a handler, unless the store says less. */
const parkedLimit = 1_000

/** Delay after a failed claim (ms). */
const claimRetryMs = 100

/** Failures in a row after which one is logged, and the time until the next log line (ms). */
const failuresBeforeLog = 3
const logIntervalMs = 60_000

/** Longest wait for the database after the handlers have ended, when the inbox closes (ms). */
const releaseMs = 1_000

/** Handles events in this process: claims those that are due, runs each media item's in order, and records the results. */
export class SqlWorker {
  readonly jobs = new SqlJobs()
  readonly #store: EventStore
  readonly #logger: Logger
  readonly #concurrency: number
  readonly #isStrict: boolean
  readonly #settling: SqlSettling
  readonly #engine: PausableEngine<SqlJob>
  readonly #renewal: Renewal | undefined
  #listener: StoreListener | undefined
  /** Callers that wait for the end of an event, retries included, by key. */
  readonly #waits = new Map<string, () => void>()
  #claiming: Promise<void> | undefined
  /** Handed over while a claim is in flight: its events may precede them in their lanes. */
  #queuedBehindClaim: SqlJob[] | undefined
  #isAwake = false
  /** False once a claim has found all the events that this process could take. */
  #mayHaveMore = true
  /** The media items that the last claim left out: this process has enough of their events, or a straggler holds them up. */
  #crowded: readonly string[] = []
  /** Strict order: media items whose head is retrying. True once the retry is recorded. */
  readonly #heldBack = new Map<string, boolean>()
  /** True if the answer to a claim was lost: this process may hold events that it does not know. */
  #mayHoldUnknown = false
  readonly #outage = new OutageLog()
  #failures = 0
  #loggedAt = Number.NEGATIVE_INFINITY
  #timer: Timer | undefined
  /** Events that waited when this process stopped. */
  readonly #released: UnfinishedEvent[] = []
  #state: 'starting' | 'open' | 'stopped' = 'starting'

  constructor({ store, host, concurrency }: SqlWorkerOptions) {
    const { shared } = store
    this.#store = store
    this.#logger = host.logger
    this.#concurrency = concurrency
    this.#isStrict = host.order === 'strict'
    const owed = shared && new OwedHandlers(host, shared.ttlMs, () => shared.handlers())
    this.#settling = new SqlSettling(store, host, owed)
    this.#engine = new PausableEngine({
      handle: host.handle,
      jobs: this.jobs,
      settling: this.#settling,
      concurrency,
      mayPark: (job) => this.#mayPark(job),
      freed: () => this.wake(),
      maxUnrecorded: store.maxUnrecorded,
      order: host.order,
      ...(shared && { giveBack: (job, behind) => this.#giveBackBehind(job, behind) }),
    })
    this.#renewal = shared && this.#renewalOf(shared)
  }

  #renewalOf(lease: NonNullable<EventStore['shared']>): Renewal {
    return new Renewal({
      lease,
      isTransient: (error) => this.#store.isTransient(error),
      logger: this.#logger,
      renewed: () => {
        // It may have published new handlers.
        this.#store.look('awaited')
        if (this.#isAwake) this.wake()
      },
      lost: () => this.#lost(),
      tookOver: () => this.wake(),
    })
  }

  /** True if no event waits or is held anywhere, and this process will hear of the next one. */
  get isQuiet(): boolean {
    return this.#store.isQuiet && !this.#engine.isPaused && this.#store.isNotified
  }

  /** True while the inbox or a handler is paused. */
  get hasPauses(): boolean {
    return this.#engine.hasPauses
  }

  /** Resolves once this process has handled an event, retries included, or does not hold it any more. */
  handled(key: string): Promise<void> {
    return new Promise((resolve) => {
      this.#waits.set(key, () => {
        this.#waits.delete(key)
        resolve()
      })
    })
  }

  /** Stops the handler that runs for an event. False if none does. */
  stop(key: string): boolean {
    return stopRun(this.jobs.get(key))
  }

  /** Stops the handler that runs for the event of a row. */
  stopId(id: string): void {
    stopRun(this.jobs.ofId(id))
  }

  /**
   * Publishes the handlers of this process, if they have changed. Call it before another process can get an event that owes
   * them.
   */
  publish(): Promise<void> | undefined {
    const { shared } = this.#store
    return shared?.hasNewHandlers ? shared.publish() : undefined
  }

  /**
   * @param listener what the inbox wants to hear; the worker hears the rest
   * @param tables those of the store while it opens
   */
  async start(listener: Pick<StoreListener, 'heard' | 'lost'>, tables: SqlTables): Promise<void> {
    const leaseMs = this.#store.shared?.leaseMs ?? maxWaitMs
    this.#listener = {
      ...listener,
      stored: () => this.wake(),
      handOver: (event) => this.#addJob(new SqlJob(event, this.#store), this.#queuedBehindClaim),
      cutOff: () => this.#cutOff(),
      longRunning: () => this.jobs.longRunning(leaseMs / 3),
      load: () => ({ running: this.#engine.running, bytes: this.jobs.bytes, isPaused: this.#engine.isPaused }),
      isFull: (unfinished, maxWaiting) => this.jobs.isFull(unfinished - this.#engine.running, maxWaiting),
    }
    await this.#store.begin(this.#listener)
    if (this.#isStrict && !this.#store.shared) await this.#holdRetrying(tables)
    if (this.#state === 'stopped') return
    this.#state = 'open'
    this.#renewal?.start()
    this.wake()
  }

  /** Blocks the lanes of the retries in the storage. */
  async #holdRetrying(tables: SqlTables): Promise<void> {
    const sql = `SELECT id, event FROM $event WHERE due_at IS NOT NULL AND id > $1 ORDER BY id LIMIT ${retryingPerTurn}`
    let rows: { readonly id: number; readonly event: string }[] = []
    do {
      rows = await tables.read(sql, [rows.at(-1)?.id ?? 0])
      for (const { event } of rows) this.#holdBehind(event)
      await nextTurn()
    } while (rows.length === retryingPerTurn)
  }

  #holdBehind(event: string): void {
    try {
      const { mediaId, key } = JSON.parse(event) as MediaEvent
      this.#engine.hold(mediaId, key)
    } catch {
      // Damaged, so never claimed.
    }
  }

  /** Looks for events. */
  wake(reason: Reason = 'new'): void {
    this.#store.look(reason)
    this.#isAwake = true
    this.#mayHaveMore = true
    if (this.#state !== 'open' || !this.#store.holds || this.#claiming !== undefined) return
    this.#claiming = this.#claim().then(() => {
      this.#claiming = undefined
      if (this.#isAwake) this.wake()
    })
  }

  /** Obeys the pauses of the inbox. While all of it is paused, this process claims nothing. */
  obey(pauses: readonly Pause[]): void {
    this.#engine.obey(pauses)
    this.wake('due')
  }

  /** Claims events until there are no more, or until it has enough. */
  async #claim(): Promise<void> {
    while (this.#isAwake && this.#state === 'open' && this.#store.holds) {
      this.#isAwake = false
      const { isPaused } = this.#engine
      if (!isPaused && this.#room() === 0) break
      try {
        this.#wakeIn(await (isPaused ? this.#giveBack() : this.#claimBatch()))
        this.#outage.worked()
        this.#failures = 0
      } catch (error) {
        this.#mayHoldUnknown = true
        this.#logFailure(error)
        this.#wakeIn(claimRetryMs)
      }
    }
  }

  #logFailure(error: unknown): void {
    if (this.#state === 'stopped') return
    if (!this.#store.isTransient(error))
      return this.#outage.failed(() => this.#logger.error({ err: error }, 'the inbox could not claim events'))
    // A claim that always takes too long looks transient too.
    if (++this.#failures < failuresBeforeLog || performance.now() < this.#loggedAt + logIntervalMs) return
    this.#loggedAt = performance.now()
    this.#logger.warn({ err: error }, 'the inbox could not claim events, and tries again')
  }

  /** False if an event whose handler is at its limit has to go back, so that those behind it in the storage can come. */
  #mayPark(job: SqlJob): boolean {
    const {
      readAhead,
      maxParked = Math.min(readAhead / 2, parkedLimit),
      maxBytes = Number.POSITIVE_INFINITY,
    } = this.#store
    // Its slot is free without an end, and the next suspect need not wait for it.
    if (this.#mayHaveMore || job.isSuspect) later(() => this.wake())
    return this.#engine.parked < maxParked && this.jobs.bytes < maxBytes / 2
  }

  /**
   * Number of events to claim. While a slot is free, the waiting events belong to the media items of running ones. Otherwise
   * nothing is claimed until most of the claimed events have begun, so that a claim is worth its statement.
   */
  #room(): number {
    const { running, parked } = this.#engine
    const waiting = this.jobs.counts().waiting - parked
    const { claimSize, readAhead, maxBytes = Number.POSITIVE_INFINITY } = this.#store
    if (this.jobs.bytes >= maxBytes) return 0
    if (running < this.#concurrency) return waiting < readAhead ? claimSize : 0
    return waiting <= claimSize / 4 ? Math.max(claimSize - waiting - running, 0) : 0
  }

  /** Resolves with the time until the next claim (ms). */
  async #claimBatch(): Promise<number> {
    await this.#releaseUnknown()
    this.#queuedBehindClaim = []
    try {
      return await this.#addClaimed(await this.#store.claim(() => this.#want()))
    } finally {
      this.#addQueued()
    }
  }

  #addQueued(): void {
    const jobs = this.#queuedBehindClaim ?? []
    this.#queuedBehindClaim = undefined
    for (const job of jobs) this.#engine.add(job)
  }

  async #addClaimed(claimed: Claimed | undefined): Promise<number> {
    if (claimed === undefined) {
      this.#mayHoldUnknown = true
      this.#isAwake = true
      return claimRetryMs
    }
    const { events, nextInMs, hasMore } = claimed
    const jobs = events.map((event) => new SqlJob(event, this.#store)).filter((job) => !this.#heldBack.has(job.lane))
    // Claimed before the database knew of the retry.
    if (jobs.length < events.length) this.#mayHoldUnknown = this.#isAwake = true
    for (const job of jobs) this.#addJob(job)
    this.#addQueued()
    // The engine starts them in the next turn. Only then it is known which of them wait for a slot.
    if (jobs.length > 0) await nextTurn()
    // The events behind a suspect could not be claimed before it.
    this.#isAwake ||= jobs.some(({ isSuspect }) => isSuspect) || hasMore
    this.#mayHaveMore = this.#isAwake
    return nextInMs
  }

  #want(): Want {
    for (const [lane, isRecorded] of this.#heldBack) if (isRecorded) this.#heldBack.delete(lane)
    const full = [...this.jobs.ofEachMedia()].filter(([, count]) => count >= maxPerMedia).map(([lane]) => lane)
    this.#crowded = [...full, ...this.#engine.heldUpLanes(), ...this.#heldBack.keys()]
    return {
      limit: Math.max(this.#room(), 1),
      withSuspect: ![...this.jobs].some(({ isSuspect, isParked }) => isSuspect && !isParked),
      crowded: this.#crowded,
      held: this.jobs.held(),
      heldBytes: this.jobs.bytes,
    }
  }

  /** Gives up the claimed events that have not started. Resolves with the time until the next look (ms). */
  async #giveBack(): Promise<number> {
    this.#handBack([...this.jobs].filter(({ state }) => state === 'waiting'))
    await this.#releaseUnknown()
    return this.#store.pollMs
  }

  /** Ends jobs that do not run. The next claim gives their events up first. */
  #handBack(jobs: readonly SqlJob[]): void {
    for (const job of jobs) {
      job.stop(new WebhookError('lease_lost', 'the event went back to the storage'))
      this.jobs.end(job, 'retried')
    }
    this.#mayHoldUnknown ||= jobs.length > 0
  }

  /** Hands back the events behind a retry. Once it is recorded, claims leave them out. */
  #giveBackBehind(job: SqlJob, behind: readonly SqlJob[]): void {
    this.#handBack(behind)
    this.#heldBack.set(job.lane, false)
    void job.ended().then(() => this.#heldBack.set(job.lane, true))
  }

  /** Gives up the events that this process may hold without knowing it. */
  async #releaseUnknown(): Promise<void> {
    if (!this.#mayHoldUnknown) return
    // Set first: the lease may end meanwhile.
    this.#mayHoldUnknown = false
    await this.#store.keepOnly(this.jobs.held())
  }

  /** @param behind queues the job until a claim in flight has filled the lanes */
  #addJob(job: SqlJob, behind?: SqlJob[]): void {
    // The previous attempt was recorded, and its record is not confirmed yet.
    const previous = this.jobs.get(job.key)
    if (previous !== undefined) this.jobs.end(previous, 'retried')
    this.jobs.add(job)
    if (this.#state === 'stopped') return
    if (behind === undefined) this.#engine.add(job)
    else behind.push(job)
    void job.ended().then((end) => {
      if (end !== 'retried') this.#waits.get(job.key)?.()
      if (end === 'lost') this.#mayHoldUnknown = true
      if (this.#mayClaimAfter(job, end)) this.wake()
    })
  }

  /** True if the end of an event may be the reason that another one can be claimed. */
  #mayClaimAfter(job: SqlJob, end: JobEnd): boolean {
    // A failed event waits to be claimed again. The next suspect waits for the end of this one.
    if (this.#mayHaveMore || end !== 'handled' || job.isSuspect) return true
    if (this.#isStrict && (job.number > 1 || job.releases > 0)) return true
    return this.#crowded.includes(job.lane) && (this.jobs.ofEachMedia().get(job.lane) ?? 0) < maxPerMedia
  }

  #wakeIn(ms: number): void {
    clearTimeout(this.#timer)
    const { pollMs } = this.#store
    const soonestMs = Math.min(ms, pollMs)
    if (soonestMs === Number.POSITIVE_INFINITY) return
    this.#timer = setTimeout(
      () => {
        if (this.isQuiet) return this.#wakeIn(pollMs)
        this.wake('timer')
      },
      Math.min(soonestMs, maxWaitMs),
    )
    unref(this.#timer)
  }

  /** The lease has run out by the clock of this process. The database may still have its row, and then these events. */
  #cutOff(): void {
    this.#logger.warn(
      { events: this.jobs.size },
      'the lease of this process ran out, because its database could not be reached; its handlers are stopped',
    )
    // Results that wait for the database are recorded if no process has taken their events over.
    this.#engine.giveUp([...this.jobs].filter(({ state }) => state !== 'recording'))
    this.#isAwake = true
  }

  async #lost(): Promise<void> {
    const jobs = [...this.jobs]
    this.#logger.warn({ events: jobs.length }, 'the lease of this process was lost; others may handle its events')
    this.#engine.giveUp(jobs)
    await this.#store.begin(this.#listener as StoreListener)
    this.wake()
  }

  /** Stops for good, at once: another process has the storage now. */
  abandon(reason: string): void {
    this.#engine.giveUp([...this.jobs], reason)
    this.stopStarting()
  }

  /** Starts no more events. */
  stopStarting(): void {
    this.#state = 'stopped'
    clearTimeout(this.#timer)
    this.#engine.stop(() => {})
    // Now: the end of a running event would start the next one of its media item.
    this.#released.push(...this.jobs.release(['claiming', 'waiting']))
  }

  /** Waits for running events. Returns those that waited. Call `stopStarting` before, and `release` afterwards. */
  async finish(left: Countdown): Promise<readonly UnfinishedEvent[]> {
    await within(left(), Promise.resolve(this.#claiming), () => {})
    this.#released.push(...this.jobs.release(['claiming', 'waiting']))
    await this.jobs.idle(left())
    return this.#released
  }

  /** Releases the remaining events. */
  async release(left: Countdown): Promise<readonly UnfinishedEvent[]> {
    const unfinished = this.jobs.release(['running'])
    // If the database can't be reached, the lease runs out.
    await within(left(releaseMs), this.#release(), () => {}).catch(() => {})
    if (this.#store.shared) logReleased(unfinished, this.#logger)
    return [...unfinished, ...releaseUnrecorded(this.jobs, this.#logger)]
  }

  async #release(): Promise<void> {
    await this.#renewal?.stop()
    await this.#settling.settled()
    await this.#store.end()
  }
}
