import { WebhookError } from '../../errors.ts'
import type { MediaEvent } from '../../events/media-service/catalogue.ts'
import type { Countdown } from '../../internal/countdown.ts'
import type { Logger } from '../../internal/logger.ts'
import { later, maxWaitMs, nextTurn, within } from '../../internal/timers.ts'
import type { JobEnd } from '../engine/job.ts'
import { logReleased, releaseUnrecorded } from '../engine/jobs.ts'
import { OwedHandlers } from '../engine/owed-handlers.ts'
import { PausableEngine } from '../engine/pausable-engine.ts'
import { stopRun } from '../engine/stop-run.ts'
import type { InboxHost, UnfinishedEvent } from '../inbox.ts'
import type { Pause } from '../reading.ts'
import { ClaimLoop, claimRetryMs } from './claim-loop.ts'
import { SqlJob, SqlJobs } from './job.ts'
import { Renewal } from './renewal.ts'
import { SqlSettling } from './settling.ts'
import type { Reason } from './signal.ts'
import type { ClaimRequest, ClaimResult, EventStore, StoreListener } from './store.ts'
import type { SqlTables } from './tables.ts'

export interface SqlWorkerOptions {
  readonly store: EventStore
  readonly host: InboxHost
  readonly concurrency: number
}

/** Events held per media item before claims skip it. */
const maxPerMedia = 16

/** Retrying events read per event-loop turn at start-up. */
const retryingPerTurn = 200

/** Default limit on parked events, which wait for the concurrency limit of their handler. */
const parkedLimit = 1_000

/** Longest wait for the database on close, after the handlers have ended (ms). */
const releaseMs = 1_000

/** Handles events in this process: claims due ones, runs each media item's in order, records the results. */
export class SqlWorker {
  readonly jobs = new SqlJobs()
  readonly #store: EventStore
  readonly #logger: Logger
  readonly #concurrency: number
  readonly #isStrict: boolean
  readonly #settling: SqlSettling
  readonly #engine: PausableEngine<SqlJob>
  readonly #loop: ClaimLoop
  readonly #renewal: Renewal | undefined
  #listener: StoreListener | undefined
  readonly #waits = new Map<string, () => void>()
  /** Events handed over while a claim is in flight. They queue: the claim may bring earlier events of their lanes. */
  #queuedBehindClaim: SqlJob[] | undefined
  /** False once a claim has returned all that this process could take. */
  #mayHaveMore = true
  /** Media items the last claim skipped: this process holds enough of their events, or a straggler blocks them. */
  #skippedMedia: readonly string[] = []
  /** Strict order: media items with a retry at their head. True once the retry is recorded. */
  readonly #heldBack = new Map<string, boolean>()
  /** True after a lost answer: the database may count events as ours that we don't know. */
  #mayHoldUnknown = false
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
    this.#loop = new ClaimLoop({
      store,
      logger: host.logger,
      mayClaim: () => this.#state === 'open' && store.holds,
      claim: () => this.#claim(),
      canSkip: () => this.isQuiet,
      wake: () => this.wake('timer'),
    })
    this.#renewal = shared && this.#renewalOf(shared)
  }

  #renewalOf(lease: NonNullable<EventStore['shared']>): Renewal {
    return new Renewal({
      lease,
      isTransient: (error) => this.#store.isTransient(error),
      logger: this.#logger,
      renewed: () => {
        this.#store.widenNextClaim('awaited')
        if (this.#loop.isAwake) this.wake()
      },
      lost: () => this.#lost(),
      tookOver: () => this.wake(),
    })
  }

  /** True if no event waits or is held anywhere, and a signal will announce the next one. */
  get isQuiet(): boolean {
    return this.#store.isQuiet && !this.#engine.isPaused && this.#store.isNotified
  }

  get hasPauses(): boolean {
    return this.#engine.hasPauses
  }

  /** Resolves once this process has handled an event, retries included, or no longer holds it. */
  handled(key: string): Promise<void> {
    return new Promise((resolve) => {
      this.#waits.set(key, () => {
        this.#waits.delete(key)
        resolve()
      })
    })
  }

  /** Stops the running handler of an event. False if none runs. */
  stop(key: string): boolean {
    return stopRun(this.jobs.get(key))
  }

  stopId(id: string): void {
    stopRun(this.jobs.ofId(id))
  }

  /** Publishes new handlers. Call it before another process can claim an event that owes them. */
  publish(): Promise<void> | undefined {
    const { shared } = this.#store
    return shared?.hasNewHandlers ? shared.publish() : undefined
  }

  /** @param listener the callbacks of the inbox; the worker adds its own */
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

  wake(reason: Reason = 'new'): void {
    this.#store.widenNextClaim(reason)
    this.#mayHaveMore = true
    this.#loop.wake()
  }

  /** Applies the pauses. While the whole inbox is paused, this process claims nothing. */
  applyPauses(pauses: readonly Pause[]): void {
    this.#engine.applyPauses(pauses)
    this.wake('due')
  }

  #claim(): Promise<number> | undefined {
    const { isPaused } = this.#engine
    if (!isPaused && this.#room() === 0) return undefined
    return (isPaused ? this.#giveBack() : this.#claimBatch()).catch((error) => {
      this.#mayHoldUnknown = true
      throw error
    })
  }

  /** False if a job whose handler is at its limit must go back, to make room for the events behind it. */
  #mayPark(job: SqlJob): boolean {
    const {
      readAhead,
      maxParked = Math.min(readAhead / 2, parkedLimit),
      maxBytes = Number.POSITIVE_INFINITY,
    } = this.#store
    // The job gives up its slot without ending, and no longer holds back the next suspect.
    if (this.#mayHaveMore || job.isSuspect) later(() => this.wake())
    return this.#engine.parked < maxParked && this.jobs.bytes < maxBytes / 2
  }

  /**
   * Number of events to claim. While a slot is free, waiting events only wait for their media item. Once none is, the
   * next claim comes when most of the claimed events have started: a claim should be worth its statement.
   */
  #room(): number {
    const { running, parked } = this.#engine
    const waiting = this.jobs.counts().waiting - parked
    const { claimSize, readAhead, maxBytes = Number.POSITIVE_INFINITY } = this.#store
    if (this.jobs.bytes >= maxBytes) return 0
    if (running < this.#concurrency) return waiting < readAhead ? claimSize : 0
    return waiting <= claimSize / 4 ? Math.max(claimSize - waiting - running, 0) : 0
  }

  async #claimBatch(): Promise<number> {
    await this.#releaseUnknown()
    this.#queuedBehindClaim = []
    try {
      return await this.#addClaimed(await this.#store.claim(() => this.#claimRequest()))
    } finally {
      this.#addQueued()
    }
  }

  #addQueued(): void {
    const jobs = this.#queuedBehindClaim ?? []
    this.#queuedBehindClaim = undefined
    for (const job of jobs) this.#engine.add(job)
  }

  async #addClaimed(claimed: ClaimResult | undefined): Promise<number> {
    if (claimed === undefined) {
      this.#mayHoldUnknown = true
      this.#loop.again()
      return claimRetryMs
    }
    const { events, nextInMs, hasMore } = claimed
    const jobs = events.map((event) => new SqlJob(event, this.#store)).filter((job) => !this.#heldBack.has(job.lane))
    // Claimed before the database knew of the retry.
    if (jobs.length < events.length) {
      this.#mayHoldUnknown = true
      this.#loop.again()
    }
    for (const job of jobs) this.#addJob(job)
    this.#addQueued()
    // The engine starts the jobs in the next turn. Before that, nobody knows which of them wait for a slot.
    if (jobs.length > 0) await nextTurn()
    // Events behind a suspect become claimable with it.
    if (hasMore || jobs.some(({ isSuspect }) => isSuspect)) this.#loop.again()
    this.#mayHaveMore = this.#loop.isAwake
    return nextInMs
  }

  #claimRequest(): ClaimRequest {
    for (const [lane, isRecorded] of this.#heldBack) if (isRecorded) this.#heldBack.delete(lane)
    const full = [...this.jobs.ofEachMedia()].filter(([, count]) => count >= maxPerMedia).map(([lane]) => lane)
    this.#skippedMedia = [...full, ...this.#engine.blockedLanes(), ...this.#heldBack.keys()]
    return {
      limit: Math.max(this.#room(), 1),
      withSuspect: ![...this.jobs].some(({ isSuspect, isParked }) => isSuspect && !isParked),
      skippedMedia: this.#skippedMedia,
      held: this.jobs.held(),
      heldBytes: this.jobs.bytes,
    }
  }

  /** Returns events that have not started. Resolves with the time until the next look (ms). */
  async #giveBack(): Promise<number> {
    this.#handBack([...this.jobs].filter(({ state }) => state === 'waiting'))
    await this.#releaseUnknown()
    return this.#store.pollMs
  }

  /** Ends jobs that are not running. The next claim releases their events first. */
  #handBack(jobs: readonly SqlJob[]): void {
    for (const job of jobs) {
      job.stop(new WebhookError('lease_lost', 'the event went back to the storage'))
      this.jobs.end(job, 'retried')
    }
    this.#mayHoldUnknown ||= jobs.length > 0
  }

  /** Hands back the events behind a retry. Once the retry is recorded, claims skip them anyway. */
  #giveBackBehind(job: SqlJob, behind: readonly SqlJob[]): void {
    this.#handBack(behind)
    this.#heldBack.set(job.lane, false)
    void job.ended().then(() => this.#heldBack.set(job.lane, true))
  }

  /** Releases events that this process may hold without knowing it. */
  async #releaseUnknown(): Promise<void> {
    if (!this.#mayHoldUnknown) return
    // Set first: the lease may end during the call.
    this.#mayHoldUnknown = false
    await this.#store.keepOnly(this.jobs.held())
  }

  #addJob(job: SqlJob, behind?: SqlJob[]): void {
    // The end of the previous attempt is recorded, but not confirmed yet.
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

  /** True if the end of an event may make another one claimable. */
  #mayClaimAfter(job: SqlJob, end: JobEnd): boolean {
    // A failed event must be claimed again. The next suspect waits for this one to end.
    if (this.#mayHaveMore || end !== 'handled' || job.isSuspect) return true
    if (this.#isStrict && (job.number > 1 || job.releases > 0)) return true
    return this.#skippedMedia.includes(job.lane) && (this.jobs.ofEachMedia().get(job.lane) ?? 0) < maxPerMedia
  }

  /** The lease expired by this process's clock. Its row, and so its events, may still be in the database. */
  #cutOff(): void {
    this.#logger.warn(
      { events: this.jobs.size },
      'this process could not renew its lease, so it stopped its handlers; check that it can reach its database',
    )
    // A result on its way to the database still counts if no other process took the event over.
    this.#engine.giveUp([...this.jobs].filter(({ state }) => state !== 'recording'))
    this.#loop.again()
  }

  async #lost(): Promise<void> {
    const jobs = [...this.jobs]
    this.#logger.warn({ events: jobs.length }, 'this process lost its lease; other processes may handle its events')
    this.#engine.giveUp(jobs)
    await this.#store.begin(this.#listener as StoreListener)
    this.wake()
  }

  /** Stops at once and for good: another process has the storage. */
  abandon(reason: string): void {
    this.#engine.giveUp([...this.jobs], reason)
    this.stopStarting()
  }

  stopStarting(): void {
    this.#state = 'stopped'
    this.#loop.stop()
    this.#engine.stop(() => {})
    // Before a running event ends: that would start the next one of its media item.
    this.#released.push(...this.jobs.release(['claiming', 'waiting']))
  }

  /** Waits for running events, and returns those that were waiting. Call `stopStarting` before and `release` after. */
  async finish(left: Countdown): Promise<readonly UnfinishedEvent[]> {
    await within(left(), this.#loop.idle(), () => {})
    this.#released.push(...this.jobs.release(['claiming', 'waiting']))
    await this.jobs.idle(left())
    return this.#released
  }

  async release(left: Countdown): Promise<readonly UnfinishedEvent[]> {
    const unfinished = this.jobs.release(['running'])
    // If the database is unreachable, the lease just expires.
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
