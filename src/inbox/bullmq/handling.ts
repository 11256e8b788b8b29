import { DelayedError, UnrecoverableError, Worker } from 'bullmq'
import { WebhookError } from '../../errors.ts'
import type { Logger } from '../../internal/logger.ts'
import { longestWaitMs, within } from '../../internal/timers.ts'
import type { Handle, HandlingResult, InboxHost, UnfinishedEvent } from '../inbox.ts'
import { BullmqAttempt } from './attempt.ts'
import type { JobData } from './job-data.ts'
import { jobReader, type ReadJob } from './job-reader.ts'
import type { EventJob, EventQueue } from './queue.ts'

export interface BullmqHandlingOptions {
  readonly concurrency: number
  readonly leaseMs: number
  readonly ttlMs: number
}

/** The number of times that a process may end while it handles an event: an event must not crash them for ever. */
const maxCrashes = 10

/** The pause before a failed step in Redis is tried again, in ms. */
const retryPauseMs = 500

/** The pause, in ms, before a job that Redis failed to end is started again, and found to be handled. */
const unendedPauseMs = 5_000

/** Tells BullMQ when to run a job again. */
class Retry extends Error {
  readonly delayMs: number

  constructor(delayMs: number) {
    super('a handler failed and will run again')
    this.delayMs = delayMs
  }
}

/** Handles the events of the queue in this process: a BullMQ worker, whose locks are the leases. */
export class BullmqHandling {
  readonly #queue: EventQueue
  readonly #handle: Handle
  readonly #readJob: ReadJob
  readonly #logger: Logger
  readonly #ttlMs: number
  readonly #running = new Map<string, BullmqAttempt>()
  readonly #worker: Worker<JobData>

  constructor(queue: EventQueue, host: InboxHost, { concurrency, leaseMs, ttlMs }: BullmqHandlingOptions) {
    this.#queue = queue
    this.#handle = host.handle
    this.#readJob = jobReader(queue, host)
    this.#logger = host.logger
    this.#ttlMs = ttlMs
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
      // The inbox logs an outage once; BullMQ reports it for every attempt to reconnect.
      if (queue.client.status === 'ready') host.logger.warn({ err: error }, 'BullMQ reported an error')
    })
  }

  async #process(job: EventJob): Promise<void> {
    const former = this.#running.get(job.id as string)
    if (former !== undefined) return this.#putOff(job, former)
    const accepted = await this.#readJob(job)
    if (accepted === undefined) return
    const attempt = new BullmqAttempt(job, accepted)
    this.#running.set(job.id as string, attempt)
    try {
      await Promise.race([this.#attempt(attempt), attempt.stopped])
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

  async #attempt(attempt: BullmqAttempt): Promise<void> {
    const { job, accepted, completed } = attempt
    if (job.attemptsStarted > 1 && (await this.#queue.wasHandled(job))) return
    if (job.stalledCounter > maxCrashes) {
      const message = `its handling was cut off ${job.stalledCounter} times`
      return this.#bury(attempt, { status: 'dead', completed, failures: [{ handler: 'none', message }] })
    }
    const result = await this.#handle(accepted.event, accepted.receivedAt, attempt)
    // The process that has the event now records the result.
    if (attempt.aborted) return
    if (result.status === 'done') return this.#insist(attempt, () => this.#queue.remember(job, this.#ttlMs))
    if (result.status === 'dead') return this.#bury(attempt, result)
    await this.#insist(attempt, () => attempt.record(result.completed))
    throw new Retry(Math.ceil(result.delayMs))
  }

  async #bury(attempt: BullmqAttempt, result: HandlingResult & { status: 'dead' }): Promise<never> {
    const { completed, failures } = result
    await this.#insist(attempt, () => attempt.job.updateProgress({ completed, failures }))
    await this.#insist(attempt, () => this.#queue.rememberDead(attempt.job))
    throw new UnrecoverableError(failures.map(({ handler, message }) => `${handler}: ${message}`).join('; '))
  }

  /** Repeats a step until Redis does it: a failed job would run handlers again that have succeeded. */
  async #insist(attempt: BullmqAttempt, step: () => Promise<void>): Promise<void> {
    while (!attempt.aborted) {
      try {
        return await step()
      } catch (error) {
        this.#logger.warn(
          { key: attempt.accepted.event.key, err: error },
          'Redis could not record the result of an event',
        )
        await new Promise((resolve) => setTimeout(resolve, retryPauseMs))
      }
    }
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

  /** Starts no more events, and waits up to `timeoutMs` for running ones. The leases of the others run out. */
  async close(timeoutMs: number): Promise<readonly UnfinishedEvent[]> {
    const closed = this.#worker.close()
    // Without Redis nothing can end, and the worker would use up the whole time to close.
    const isIdle = this.#running.size === 0 && this.#queue.client.status !== 'ready'
    await within(isIdle ? 0 : Math.min(timeoutMs, longestWaitMs), closed, () => {})
    const unfinished = [...this.#running.values()]
    for (const attempt of unfinished) attempt.abort(new WebhookError('closing', 'the inbox is closing'))
    return unfinished.map(({ accepted }) => ({ ...accepted, state: 'running' }))
  }
}
