import type { Pool } from 'pg'
import { WebhookError } from '../../errors.ts'
import type { Logger } from '../../internal/logger.ts'
import { type Timer, unref, within } from '../../internal/timers.ts'
import type { InboxHost, UnfinishedEvent } from '../inbox.ts'
import { Handling } from '../shared/handling.ts'
import { Jobs } from '../shared/jobs.ts'
import { claim, type OwnClaims } from './claims.ts'
import { type Database, isAway } from './database.ts'
import { PostgresJob } from './job.ts'
import { hashMedia } from './keys.ts'
import { PostgresLedger } from './ledger.ts'
import { Owner } from './owner.ts'
import { Regularly } from './regularly.ts'
import { transactions } from './transaction.ts'

export interface PostgresHandlingOptions {
  readonly database: Database
  readonly host: InboxHost
  readonly pool: Pool
  readonly channel: string
  readonly concurrency: number
  readonly leaseMs: number
  /** The longest time between two looks for events, in ms, where no notification arrives. */
  readonly pollMs: number
}

/** The number of events that are claimed at a time: the next ones when half of them have begun. */
const batch = 64

/** The number of its events at which no more of a media are claimed. */
const maxOfMedia = 16

/** The most claimed events that wait in this process. */
const maxWaiting = 500

/** The pause before another claim, in ms, after one that failed. */
const pauseMs = 100

/** The longest that closing waits for Postgres after the handlers have ended, in ms. */
const releaseMs = 1_000

/** Handles events in this process: it claims those that are due, runs them in the order of their media, and records the results. */
export class PostgresHandling {
  readonly #options: PostgresHandlingOptions
  readonly #logger: Logger
  readonly #jobs = new Jobs<PostgresJob>()
  readonly #owner: Owner
  readonly #ledger: PostgresLedger
  readonly #handling: Handling<PostgresJob>
  readonly #lease: Regularly
  readonly #transact: ReturnType<typeof transactions>
  #claiming: Promise<void> | undefined
  #isAwake = false
  /** `true` unless the last claim found every event that this process could take. */
  #mayHaveMore = true
  /** The media of which the last claim took no more, since enough of their events are here. */
  #crowded: readonly string[] = []
  /** `true` after a claim whose answer was lost: this process may own events that it does not know. */
  #isUnsure = false
  #renewedAt = performance.now()
  /** `true` if the last renewal was late, and left the other processes the time to renew theirs. */
  #gaveTime = false
  #takingOver: Promise<void> | undefined
  #timer: Timer | undefined
  #state: 'starting' | 'open' | 'stopped' = 'starting'

  constructor(options: PostgresHandlingOptions) {
    const { database, host, pool, concurrency, leaseMs } = options
    this.#options = options
    this.#logger = host.logger
    this.#owner = new Owner(database, leaseMs, 2 * concurrency)
    this.#ledger = new PostgresLedger(database, host)
    this.#handling = new Handling({ handle: host.handle, jobs: this.#jobs, ledger: this.#ledger, concurrency })
    this.#transact = transactions({ pool, schema: database.schema, leaseMs, measured: host.measured })
    this.#lease = new Regularly(() => this.#renew(), Math.min(leaseMs / 3, 1_000), host.logger)
  }

  /** The claims of this process, as it knows them itself. */
  claims(): OwnClaims {
    const started = [...this.#jobs].filter(({ shownState }) => shownState === 'running')
    return { owner: this.#owner.id, started: started.map(({ id }) => id) }
  }

  has(key: string): boolean {
    return this.#jobs.get(key) !== undefined
  }

  async start(): Promise<void> {
    await this.#owner.register()
    this.#renewedAt = performance.now()
    this.#state = 'open'
    this.#lease.start(0)
    this.wake()
  }

  /** Looks for events: some were accepted, or may have been. */
  wake(): void {
    this.#isAwake = true
    this.#mayHaveMore = true
    if (this.#state !== 'open' || this.#claiming !== undefined) return
    this.#claiming = this.#claim().then(() => {
      this.#claiming = undefined
      if (this.#isAwake) this.wake()
    })
  }

  /** Claims events until there are none, or enough. */
  async #claim(): Promise<void> {
    while (this.#isAwake && this.#state === 'open') {
      this.#isAwake = false
      if (!this.#hasRoom()) break
      try {
        const nextInMs = await this.#claimSome()
        this.#wakeIn(nextInMs)
      } catch (error) {
        this.#isUnsure = true
        if (!isAway(error)) this.#logger.error({ err: error }, 'the inbox could not claim events')
        this.#wakeIn(pauseMs)
      }
    }
  }

  /** Says whether there is room for more events. Where a slot is free, those that wait are of the media that run. */
  #hasRoom(): boolean {
    const { waiting } = this.#jobs.counts()
    const hasFreeSlot = this.#handling.running < this.#options.concurrency
    return waiting < (hasFreeSlot ? maxWaiting : batch / 2)
  }

  /** Returns the time until the next look, in ms. */
  async #claimSome(): Promise<number> {
    const { database, pollMs } = this.#options
    if (this.#isUnsure) await this.#owner.giveUpOthers(Array.from(this.#jobs, (job) => job.id))
    this.#isUnsure = false
    const hasSuspect = [...this.#jobs].some(isSuspect)
    this.#crowded = [...this.#counts()].filter(([, count]) => count >= maxOfMedia).map(([lane]) => lane)
    // Read now: the process may have begun a new lease while it gave up events.
    const { id } = this.#owner
    const { events, nextRetryInMs = pollMs } = await claim(database, this.#owner, {
      limit: batch,
      withSuspect: !hasSuspect,
      crowded: this.#crowded.map(hashMedia),
    })
    const jobs = events.map((event) => new PostgresJob(event, id, this.#transact))
    for (const job of jobs) this.#take(job)
    // The events behind a suspect could not be claimed before it was.
    if (jobs.some(isSuspect)) this.#isAwake = true
    this.#mayHaveMore = this.#isAwake || events.length >= batch
    if (events.length >= batch) this.#isAwake = true
    return Math.min(nextRetryInMs, pollMs)
  }

  #take(job: PostgresJob): void {
    // The previous attempt was recorded, and its record is not confirmed yet.
    const previous = this.#jobs.get(job.key)
    if (previous !== undefined) this.#jobs.end(previous, 'failed')
    this.#jobs.add(job)
    if (this.#state === 'stopped') return
    this.#handling.add(job)
    void job.ended().then((result) => this.#mayClaimAfter(job, result === 'failed') && this.wake())
  }

  /** Says whether the end of an event may be the reason that another one can be claimed. */
  #mayClaimAfter(job: PostgresJob, hasFailed: boolean): boolean {
    // A failed event waits for its retry, and the next suspect for the end of this one.
    if (this.#mayHaveMore || hasFailed || isSuspect(job)) return true
    return this.#crowded.includes(job.lane) && (this.#counts().get(job.lane) ?? 0) < maxOfMedia
  }

  #wakeIn(ms: number): void {
    clearTimeout(this.#timer)
    this.#timer = setTimeout(() => this.wake(), ms)
    unref(this.#timer)
  }

  /** Renews the lease, and takes over the events of processes that no longer do. Returns the pause until the next time. */
  async #renew(): Promise<number> {
    const { isLost, hasDead } = await this.#owner.renew()
    if (isLost) await this.#lost()
    // After an outage of Postgres the others have not renewed their leases either, and are about to. They have until the
    // next time: where every renewal is late, Postgres is only slow.
    const isLate = performance.now() - this.#renewedAt > this.#options.leaseMs / 2
    const givesTime = isLate && !this.#gaveTime
    this.#gaveTime = givesTime
    this.#renewedAt = performance.now()
    // Not awaited: it looks through many events, and would keep this process from renewing its own lease.
    if (hasDead && !givesTime) this.#takingOver ??= this.#takeOver()
    return this.#options.leaseMs / 3
  }

  async #takeOver(): Promise<void> {
    try {
      await this.#owner.takeOver()
      this.wake()
    } catch (error) {
      if (!isAway(error)) this.#logger.error({ err: error }, 'the inbox could not take over events')
    }
    this.#takingOver = undefined
  }

  async #lost(): Promise<void> {
    const error = new WebhookError('lease_lost', 'the lease of the event was lost')
    const jobs = [...this.#jobs]
    this.#logger.warn({ events: jobs.length }, 'the lease of this process was lost; others may handle its events')
    for (const job of jobs) {
      job.stop(error)
      this.#jobs.end(job, 'failed')
    }
    await this.#owner.register()
    this.wake()
  }

  /** Starts no more events, waits up to `timeoutMs` for running ones, and gives the others back. */
  async close(timeoutMs: number): Promise<readonly UnfinishedEvent[]> {
    this.#state = 'stopped'
    clearTimeout(this.#timer)
    this.#handling.stop(() => {})
    await this.#claiming
    const held = Array.from(this.#jobs, (job) => job.id)
    this.#jobs.giveUp(['claiming', 'waiting'])
    await this.#jobs.idle(timeoutMs)
    const unfinished = this.#jobs.giveUp()
    // Where Postgres is away, the lease runs out.
    await within(releaseMs, this.#release(held), () => {}).catch(() => {})
    return unfinished
  }

  async #release(held: readonly string[]): Promise<void> {
    await this.#lease.stop()
    await this.#takingOver
    await this.#ledger.settle()
    await this.#owner.release(this.#options.channel, this.#isUnsure ? undefined : held)
  }

  /** Counts the claimed events of each media. */
  #counts(): Map<string, number> {
    const counts = new Map<string, number>()
    for (const { lane } of this.#jobs) counts.set(lane, (counts.get(lane) ?? 0) + 1)
    return counts
  }
}

const isSuspect = ({ crashes }: PostgresJob): boolean => crashes > 0
