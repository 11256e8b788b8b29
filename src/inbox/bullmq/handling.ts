import { DelayedError, UnrecoverableError, Worker } from 'bullmq'
import { WebhookError } from '../../errors.ts'
import type { Logger } from '../../internal/logger.ts'
import { longestWaitMs, within } from '../../internal/timers.ts'
import type { Handle, HandlingResult, UnfinishedEvent } from '../inbox.ts'
import { BullmqAttempt } from './attempt.ts'
import { type JobReaderParts, jobReader, type ReadJob } from './job-reader.ts'
import type { EventJob, EventQueue, JobData } from './queue.ts'

export interface BullmqHandlingOptions {
  readonly concurrency: number
  readonly leaseMs: number
  readonly ttlMs: number
}

export interface BullmqHandlingParts extends JobReaderParts {
  readonly handle: Handle
}

/** How often a process may end while it handles an event; one that is at fault itself must not go on for ever. */
const maxCrashes = 10

/** How long to wait before a step that Redis refused, or could not be asked for, is tried again, in ms. */
const retryPauseMs = 500

/** How long to wait, in ms, with a job that Redis would not let end. It is begun again, and seen to be handled. */
const mishapPauseMs = 5_000

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
  readonly #events: EventQueue
  readonly #handle: Handle
  readonly #acceptedOf: ReadJob
  readonly #logger: Logger
  readonly #ttlMs: number
  readonly #running = new Map<string, BullmqAttempt>()
  readonly #worker: Worker<JobData>

  constructor({ events, handle, readRefused, logger }: BullmqHandlingParts, options: BullmqHandlingOptions) {
    const { concurrency, leaseMs, ttlMs } = options
    this.#events = events
    this.#handle = handle
    this.#acceptedOf = jobReader({ events, readRefused, logger })
    this.#logger = logger
    this.#ttlMs = ttlMs
    this.#worker = new Worker(events.jobs.name, (job) => this.#process(job), {
      connection: events.client,
      concurrency,
      lockDuration: leaseMs,
      lockRenewTime: Math.ceil(leaseMs / 3),
      // An event is taken over by the second check that finds no lease.
      stalledInterval: Math.ceil(leaseMs / 2),
      // While Redis is gone.
      runRetryDelay: retryPauseMs,
      // Counted here, so that what is given up on becomes a dead letter as any other does.
      maxStalledCount: Number.MAX_SAFE_INTEGER,
      settings: {
        backoffStrategy: (_attempts, _type, error) => (error instanceof Retry ? error.delayMs : mishapPauseMs),
      },
    })
    this.#worker.on('lockRenewalFailed', (ids) => this.#leasesLost(ids))
    this.#worker.on('error', (error) => {
      // The inbox says once that Redis is gone; BullMQ says it for every try.
      if (events.client.status === 'ready') logger.warn({ err: error }, 'BullMQ reported an error')
    })
  }

  async #process(job: EventJob): Promise<void> {
    const former = this.#running.get(job.id as string)
    if (former !== undefined) return this.#putOff(job, former)
    const accepted = await this.#acceptedOf(job)
    if (accepted === undefined) return
    const attempt = new BullmqAttempt(job, accepted)
    this.#running.set(job.id as string, attempt)
    try {
      await Promise.race([this.#attempt(attempt), attempt.stopped])
    } finally {
      this.#running.delete(job.id as string)
    }
  }

  /** Its lease ran out here unnoticed. BullMQ knows one lease of a job: the next attempt begins when this one is gone. */
  async #putOff(job: EventJob, former: BullmqAttempt): Promise<never> {
    this.#leasesLost([former.job.id as string])
    await job.moveToDelayed(Date.now() + retryPauseMs, job.token)
    throw new DelayedError()
  }

  async #attempt(attempt: BullmqAttempt): Promise<void> {
    const { job, accepted, completed } = attempt
    if (job.attemptsStarted > 1 && (await this.#events.wasHandled(job))) return
    if (job.stalledCounter > maxCrashes) {
      const message = `its handling was cut off ${job.stalledCounter} times`
      return this.#bury(attempt, { status: 'dead', completed, failures: [{ handler: 'none', message }] })
    }
    const result = await this.#handle(accepted.event, accepted.receivedAt, attempt)
    // Whoever has the event by now records what comes of it.
    if (attempt.aborted) return
    if (result.status === 'done') return this.#insist(attempt, () => this.#events.remember(job, this.#ttlMs))
    if (result.status === 'dead') return this.#bury(attempt, result)
    await this.#insist(attempt, () => attempt.record(result.completed))
    throw new Retry(Math.ceil(result.delayMs))
  }

  async #bury(attempt: BullmqAttempt, result: HandlingResult & { status: 'dead' }): Promise<never> {
    const { completed, failures } = result
    await this.#insist(attempt, () => attempt.job.updateProgress({ completed, failures }))
    await this.#insist(attempt, () => this.#events.rememberDead(attempt.job))
    throw new UnrecoverableError(failures.map(({ handler, message }) => `${handler}: ${message}`).join('; '))
  }

  /** Tries again what Redis refuses: to let the job fail would run handlers again that have succeeded. */
  async #insist(attempt: BullmqAttempt, step: () => Promise<void>): Promise<void> {
    while (!attempt.aborted) {
      try {
        return await step()
      } catch (error) {
        this.#logger.warn(
          { key: attempt.accepted.event.key, err: error },
          'Redis could not record what came of an event',
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

  /** Begins nothing any more, and lets what runs finish; after `timeoutMs` its leases are left to run out. */
  async close(timeoutMs: number): Promise<readonly UnfinishedEvent[]> {
    const closed = this.#worker.close()
    // Without Redis nothing can end, and the worker's own farewell takes as long as it is let.
    const isIdle = this.#running.size === 0 && this.#events.client.status !== 'ready'
    await within(isIdle ? 0 : Math.min(timeoutMs, longestWaitMs), closed, () => {})
    const unfinished = [...this.#running.values()]
    for (const attempt of unfinished) attempt.abort(new WebhookError('closing', 'the inbox is closing'))
    return unfinished.map(({ accepted }) => ({ ...accepted, state: 'running' }))
  }
}
