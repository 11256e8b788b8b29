import { DelayedError, WaitingError, Worker } from 'bullmq'
import { WebhookError } from '../../errors.ts'
import type { Countdown } from '../../internal/countdown.ts'
import type { Logger } from '../../internal/logger.ts'
import { within } from '../../internal/timers.ts'
import { withoutCommand } from '../../storage/reach-redis.ts'
import { OwedHandlers } from '../engine/owed-handlers.ts'
import type { InboxHost, UnfinishedEvent } from '../inbox.ts'
import { BullmqAttempt } from './attempt.ts'
import { AttemptRunner, Retry, retryPauseMs } from './attempt-runner.ts'
import { type JobData, progressOf } from './job.ts'
import { jobReader, type ReadJob } from './job-reader.ts'
import { LiveHandlers } from './live-handlers.ts'
import type { EventJob, EventQueue } from './queue.ts'

export interface BullmqWorkerOptions {
  readonly concurrency: number
  readonly leaseMs: number
  readonly ttlMs: number
}

/** Maximum time that closing waits for an idle worker, in ms. */
const idleMs = 1_000

/** Maximum time that closing waits for the release of the running events, in ms. */
const handBackMs = 1_000

/** The pause, in ms, before a job starts again if Redis failed to end it. Its event is already handled by that time. */
const unendedPauseMs = 5_000

/** Handles the events of the queue in this process: a BullMQ worker, whose locks are the leases. */
export class BullmqWorker {
  readonly #queue: EventQueue
  readonly #live: LiveHandlers
  readonly #owed: OwedHandlers
  readonly #attempts: AttemptRunner
  readonly #readJob: ReadJob
  readonly #logger: Logger
  readonly #leaseMs: number
  readonly #running = new Map<string, BullmqAttempt>()
  /** A timer for each running event. It fires when the lease has ended without a renewal. */
  readonly #ends = new Map<string, NodeJS.Timeout>()
  #isClosed = false
  readonly #worker: Worker<JobData>

  constructor(queue: EventQueue, host: InboxHost, { concurrency, leaseMs, ttlMs }: BullmqWorkerOptions) {
    this.#queue = queue
    this.#live = new LiveHandlers(queue, host.handlers, leaseMs, () => this.#owed.renewed())
    this.#owed = new OwedHandlers(host, leaseMs, () => this.#live.read())
    this.#attempts = new AttemptRunner(queue, host, ttlMs, this.#owed)
    this.#readJob = jobReader(queue, host)
    this.#logger = host.logger
    this.#leaseMs = leaseMs
    this.#worker = new Worker(queue.jobs.name, (job) => this.#process(job), {
      connection: queue.client,
      concurrency,
      lockDuration: leaseMs,
      lockRenewTime: Math.ceil(leaseMs / 3),
      // Another process takes an event over after two checks without a lease.
      stalledInterval: Math.ceil(leaseMs / 2),
      // This happens while Redis is disconnected.
      runRetryDelay: retryPauseMs,
      // Crashes are counted here, so that an event becomes a dead letter after too many of them.
      maxStalledCount: Number.MAX_SAFE_INTEGER,
      settings: {
        backoffStrategy: (_attempts, _type, error) => (error instanceof Retry ? error.delayMs : unendedPauseMs),
      },
    })
    this.#worker.on('lockRenewalFailed', (ids) => this.#leasesLost(ids))
    this.#worker.on('locksRenewed', ({ jobIds }) => {
      for (const id of jobIds) this.#ends.get(id)?.refresh()
    })
    this.#worker.on('error', (error) => {
      // The inbox logs an outage once; BullMQ reports it for every connection, and for every attempt to reconnect.
      if (queue.client.status === 'ready' && !('syscall' in error))
        host.logger.warn({ err: withoutCommand(error) }, 'BullMQ reported an error')
    })
  }

  /**
   * Publishes the handlers of this process, if they have changed. Call it before another process can get an event that
   * owes them.
   */
  publish(): Promise<void> | undefined {
    return this.#live.publish()
  }

  async #process(job: EventJob): Promise<void> {
    const former = this.#running.get(job.id as string)
    if (former !== undefined) return this.#putOff(job, former)
    if (this.#isClosed) return this.#release(job)
    if (isRevived(job)) await this.#queue.startAfresh(job)
    const accepted = await this.#readJob(job)
    if (accepted === undefined) return
    const id = job.id as string
    const attempt = new BullmqAttempt(this.#queue, job, accepted)
    this.#running.set(id, attempt)
    this.#ends.set(id, setTimeout(() => this.#leaseEnded(attempt), this.#leaseMs).unref())
    try {
      await Promise.race([this.#attempts.run(attempt), attempt.stopped])
    } finally {
      this.#running.delete(id)
      clearTimeout(this.#ends.get(id))
      this.#ends.delete(id)
    }
  }

  /**
   * Ends an attempt after its lease, since another process may have the event. Finished handlers are still recorded.
   */
  #leaseEnded(attempt: BullmqAttempt): void {
    if (!attempt.isHandled) this.#leasesLost([attempt.job.id as string])
  }

  /**
   * Postpones a job, because its earlier lease ran out here unnoticed. The next attempt waits for the end of the
   * earlier one.
   */
  async #putOff(job: EventJob, former: BullmqAttempt): Promise<never> {
    this.#leasesLost([former.job.id as string])
    await job.moveToDelayed(Date.now() + retryPauseMs, job.token)
    throw new DelayedError()
  }

  #leasesLost(jobIds: readonly string[]): void {
    for (const id of jobIds) {
      const attempt = this.#running.get(id)
      if (attempt === undefined) continue
      const { key } = attempt.accepted.event
      this.#logger.warn({ key }, 'the lease of an event was lost; another process may be handling it')
      attempt.abort(new WebhookError('lease_lost', 'the lease of the event was lost'))
    }
  }

  /** Starts no more events, and waits for running ones. Call `release` afterwards. */
  async finish(left: Countdown): Promise<void> {
    const closed = this.#worker.close()
    // Without Redis no job can end, and the worker would use up the whole time to close.
    if (this.#running.size === 0) await within(left(this.#isConnected ? idleMs : 0), closed, () => {})
    if (this.#running.size > 0) await within(left(), closed, () => {})
    this.#isClosed = true
  }

  get #isConnected(): boolean {
    return this.#queue.client.status === 'ready'
  }

  /** Releases the remaining events. */
  async release(left: Countdown): Promise<readonly UnfinishedEvent[]> {
    const unfinished = [...this.#running.values()]
    for (const attempt of unfinished) attempt.abort(new WebhookError('closing', 'the inbox is closing'))
    const released = Promise.allSettled(unfinished.map((attempt) => this.#releaseOne(attempt)))
    await within(left(this.#isConnected ? handBackMs : 0), released, () => {})
    this.#live.stop()
    return unfinished.map(({ accepted }) => ({ ...accepted, state: 'running' }))
  }

  async #releaseOne(attempt: BullmqAttempt): Promise<void> {
    await this.#attempts.uncountCrash(attempt)
    await attempt.job.moveToWait(attempt.job.token)
  }

  /** Releases an event for the next process immediately. If that fails, its lease runs out. */
  async #release(job: EventJob): Promise<never> {
    await job.moveToWait(job.token)
    throw new WaitingError()
  }
}

/** Returns `true` if an event is a replayed dead letter. Another program, such as Bull Board, may have replayed it. */
function isRevived({ progress, stalledCounter }: EventJob): boolean {
  const { failures, stalls = stalledCounter } = progressOf(progress)
  return failures !== undefined && stalledCounter <= stalls
}
