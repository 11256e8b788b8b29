import { DelayedError, UnrecoverableError, WaitingError, Worker } from 'bullmq'
import { WebhookError } from '../../errors.ts'
import type { Logger } from '../../internal/logger.ts'
import { withoutCommand } from '../../internal/reach-redis.ts'
import { longestWaitMs, within } from '../../internal/timers.ts'
import type { Handle, HandlingResult, InboxHost, UnfinishedEvent } from '../inbox.ts'
import { BullmqAttempt } from './attempt.ts'
import { Isolation } from './isolation.ts'
import { type JobData, progressOf } from './job-data.ts'
import { jobReader, type ReadJob } from './job-reader.ts'
import type { EventJob, EventQueue } from './queue.ts'

export interface BullmqHandlingOptions {
  readonly concurrency: number
  readonly leaseMs: number
  readonly ttlMs: number
}

/** The number of processes that an event may end: it must not crash them for ever. */
const maxCrashes = 10

/** The longest that closing waits until Redis has the running events back, in ms. */
const handBackMs = 1_000

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
  readonly #isolation = new Isolation()
  #isClosed = false
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
    const { job, completed } = attempt
    if (job.attemptsStarted > 1 && (await this.#queue.wasHandled(job))) return
    // The process ended while it buried the event.
    const { failures } = progressOf(job.progress)
    if (failures !== undefined) return this.#bury(attempt, { status: 'dead', completed, failures })
    if (job.stalledCounter === 0) return this.#isolation.beside(() => this.#run(attempt))
    return this.#isolation.alone(() => this.#runSuspect(attempt))
  }

  /** Handles an event that may have ended a process. If this one ends meanwhile, the event stays charged with it. */
  async #runSuspect(attempt: BullmqAttempt): Promise<void> {
    if (attempt.aborted) return
    attempt.isCharged = true
    const cutOffs = await this.#queue.charge(attempt.job, 1)
    if (cutOffs > maxCrashes) {
      const failures = [{ handler: 'none', message: `its handling was cut off ${cutOffs} times` }]
      return this.#bury(attempt, { status: 'dead', completed: attempt.completed, failures })
    }
    try {
      await this.#run(attempt)
    } finally {
      if (attempt.aborted) void this.#discharge(attempt).catch(() => {})
      else await this.#insist(attempt, () => this.#discharge(attempt))
    }
  }

  async #discharge(attempt: BullmqAttempt): Promise<void> {
    if (!attempt.isCharged) return
    attempt.isCharged = false
    try {
      await this.#queue.charge(attempt.job, -1)
    } catch (error) {
      attempt.isCharged = true
      throw error
    }
  }

  async #run(attempt: BullmqAttempt): Promise<void> {
    // It may have waited for its turn.
    if (attempt.aborted) return
    const { job, accepted } = attempt
    const result = await this.#handle(accepted.event, accepted.receivedAt, attempt)
    // The process that has the event now records the result.
    if (attempt.aborted) return
    if (result.status === 'done') return this.#insist(attempt, () => this.#queue.remember(job, this.#ttlMs))
    if (result.status === 'dead') return this.#bury(attempt, result)
    await this.#insist(attempt, () => attempt.record(result.completed))
    throw new Retry(Math.ceil(result.delayMs))
  }

  async #bury(attempt: BullmqAttempt, { failures, ...result }: HandlingResult & { status: 'dead' }): Promise<never> {
    const { job } = attempt
    const progress = { completed: attempt.withRecorded(result.completed), failures, stalls: job.stalledCounter }
    await this.#insist(attempt, () => job.updateProgress(progress))
    await this.#insist(attempt, () => this.#queue.rememberDead(job))
    throw new UnrecoverableError(failures.map(({ handler, message }) => `${handler}: ${message}`).join('; '))
  }

  /** Repeats a step until Redis does it: a failed job would run handlers again that have succeeded. */
  async #insist(attempt: BullmqAttempt, step: () => Promise<void>): Promise<void> {
    while (!attempt.aborted) {
      try {
        return await step()
      } catch (error) {
        this.#logger.warn(
          { key: attempt.accepted.event.key, err: withoutCommand(error) },
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
    await this.#discharge(attempt)
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
