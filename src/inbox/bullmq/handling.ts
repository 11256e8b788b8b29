import { DelayedError, WaitingError, Worker } from 'bullmq'
import { WebhookError } from '../../errors.ts'
import type { Logger } from '../../internal/logger.ts'
import { withoutCommand } from '../../internal/reach-redis.ts'
import { longestWaitMs, within } from '../../internal/timers.ts'
import type { InboxHost, UnfinishedEvent } from '../inbox.ts'
import { BullmqAttempt } from './attempt.ts'
import { AttemptRunner, Retry, retryPauseMs } from './attempt-runner.ts'
import { type JobData, progressOf } from './job-data.ts'
import { jobReader, type ReadJob } from './job-reader.ts'
import type { EventJob, EventQueue } from './queue.ts'

export interface BullmqHandlingOptions {
  readonly concurrency: number
  readonly leaseMs: number
  readonly ttlMs: number
}

/** The longest that closing waits until Redis has the running events back, in ms. */
const handBackMs = 1_000

/** The pause, in ms, before a job that Redis failed to end is started again, and found to be handled. */
const unendedPauseMs = 5_000

/** Handles the events of the queue in this process: a BullMQ worker, whose locks are the leases. */
export class BullmqHandling {
  readonly #queue: EventQueue
  readonly #attempts: AttemptRunner
  readonly #readJob: ReadJob
  readonly #logger: Logger
  readonly #running = new Map<string, BullmqAttempt>()
  #isClosed = false
  readonly #worker: Worker<JobData>

  constructor(queue: EventQueue, host: InboxHost, { concurrency, leaseMs, ttlMs }: BullmqHandlingOptions) {
    this.#queue = queue
    this.#attempts = new AttemptRunner(queue, host, ttlMs)
    this.#readJob = jobReader(queue, host)
    this.#logger = host.logger
    this.#worker = new Worker(queue.jobs.name, (job) => this.#process(job), {
      connection: queue.client,
      concurrency,
      lockDuration: leaseMs,
      lockRenewTime: Math.ceil(leaseMs / 3),
      // Another process takes an event over at the second check that finds no lease.
      stalledInterval: Math.ceil(leaseMs / 2),
      // While Redis is disconnected.
      runRetryDelay: retryPauseMs,
      // Crashes are counted here, so that an event with too many becomes a dead letter like any other.
      maxStalledCount: Number.MAX_SAFE_INTEGER,
      settings: {
        backoffStrategy: (_attempts, _type, error) => (error instanceof Retry ? error.delayMs : unendedPauseMs),
      },
    })
    this.#worker.on('lockRenewalFailed', (ids) => this.#leasesLost(ids))
    this.#worker.on('error', (error) => {
      // The inbox logs an outage once; BullMQ reports it for every connection, and for every attempt to reconnect.
      if (queue.client.status === 'ready' && !('syscall' in error))
        host.logger.warn({ err: withoutCommand(error) }, 'BullMQ reported an error')
    })
  }

  async #process(job: EventJob): Promise<void> {
    const former = this.#running.get(job.id as string)
    if (former !== undefined) return this.#putOff(job, former)
    if (this.#isClosed) return this.#handBack(job)
    if (isRevived(job)) await this.#queue.startAfresh(job)
    const accepted = await this.#readJob(job)
    if (accepted === undefined) return
    const attempt = new BullmqAttempt(this.#queue, job, accepted)
    this.#running.set(job.id as string, attempt)
    try {
      await Promise.race([this.#attempts.run(attempt), attempt.stopped])
    } finally {
      this.#running.delete(job.id as string)
    }
  }

  /** Postpones a job whose earlier lease ran out here unnoticed. The next attempt starts when the earlier one has ended. */
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

  /** Starts no more events, waits up to `timeoutMs` for running ones, and hands the others back. */
  async close(timeoutMs: number): Promise<readonly UnfinishedEvent[]> {
    const closed = this.#worker.close()
    const { client } = this.#queue
    // Without Redis nothing can end, and the worker would use up the whole time to close.
    const isIdle = this.#running.size === 0 && client.status !== 'ready'
    await within(isIdle ? 0 : Math.min(timeoutMs, longestWaitMs), closed, () => {})
    this.#isClosed = true
    const unfinished = [...this.#running.values()]
    for (const attempt of unfinished) attempt.abort(new WebhookError('closing', 'the inbox is closing'))
    const handedBack = Promise.allSettled(unfinished.map((attempt) => this.#giveUp(attempt)))
    await within(client.status === 'ready' ? handBackMs : 0, handedBack, () => {})
    return unfinished.map(({ accepted }) => ({ ...accepted, state: 'running' }))
  }

  async #giveUp(attempt: BullmqAttempt): Promise<void> {
    await this.#attempts.discharge(attempt)
    await attempt.job.moveToWait(attempt.job.token)
  }

  /** Gives an event to the next process at once. Where that fails, its lease runs out. */
  async #handBack(job: EventJob): Promise<never> {
    await job.moveToWait(job.token)
    throw new WaitingError()
  }
}

/** Says whether an event was a dead letter until it was replayed, here or by another program, such as Bull Board. */
function isRevived({ progress, stalledCounter }: EventJob): boolean {
  const { failures, stalls = stalledCounter } = progressOf(progress)
  return failures !== undefined && stalledCounter <= stalls
}
