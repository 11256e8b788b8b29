import { Worker } from 'bullmq'
import { WebhookError } from '../../errors.ts'
import type { Countdown } from '../../internal/countdown.ts'
import { processName } from '../../internal/process-name.ts'
import { within } from '../../internal/timers.ts'
import { withoutCommand } from '../../storage/reach-redis.ts'
import { OwedHandlers } from '../engine/owed-handlers.ts'
import { stopRun } from '../engine/stop-run.ts'
import type { InboxHost, UnfinishedEvent } from '../inbox.ts'
import type { Pause } from '../reading.ts'
import { type BullmqAttempt, beginAttempt } from './attempt.ts'
import { AttemptRunner, postpone, Retry, releaseJob, retryPauseMs } from './attempt-runner.ts'
import type { JobData } from './job.ts'
import { LiveHandlers } from './live-handlers.ts'
import { PauseWatch } from './pauses.ts'
import type { EventJob, EventQueue } from './queue.ts'

export interface BullmqWorkerOptions {
  readonly concurrency: number
  readonly leaseMs: number
  readonly ttlMs: number
}

/** Maximum time that closing waits for an idle worker, in ms. */
const idleMs = 1_000

/** Maximum time that closing waits for the release of the running events, in ms. */
const releaseMs = 1_000

/** The pause, in ms, before a job starts again if Redis failed to end it. Its event is already handled by that time. */
const unendedPauseMs = 5_000

/** Handles the events of the queue in this process: a BullMQ worker, whose locks are the leases. */
export class BullmqWorker {
  readonly #queue: EventQueue
  readonly #host: InboxHost
  readonly #live: LiveHandlers
  readonly #pauses: PauseWatch
  #pausedHandlers: ReadonlySet<string | undefined> = new Set()
  readonly #isHandlerPaused = (handler: string): boolean => this.#pausedHandlers.has(handler)
  readonly #attempts: AttemptRunner
  readonly #leaseMs: number
  readonly #running = new Map<string, BullmqAttempt>()
  #isClosed = false
  readonly #worker: Worker<JobData>

  /** @param readPauses reads the pauses, and calls `obey` if they have changed */
  constructor(
    queue: EventQueue,
    host: InboxHost,
    { concurrency, leaseMs, ttlMs }: BullmqWorkerOptions,
    readPauses: () => Promise<void>,
  ) {
    this.#queue = queue
    this.#host = host
    const owed = new OwedHandlers(host, leaseMs, () => this.#live.read())
    this.#live = new LiveHandlers(queue, host.handlers, leaseMs, () => owed.renewed())
    this.#attempts = new AttemptRunner(queue, host, ttlMs, owed)
    this.#pauses = new PauseWatch(readPauses)
    this.#leaseMs = leaseMs
    this.#worker = new Worker(queue.jobs.name, (job) => this.#process(job), {
      connection: queue.client,
      name: processName,
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
    this.#worker.on('lockRenewalFailed', (ids) => {
      for (const id of ids) this.#leaseLost(this.#running.get(id))
    })
    this.#worker.on('locksRenewed', ({ jobIds }) => {
      for (const id of jobIds) this.#running.get(id)?.leaseTimer?.refresh()
    })
    this.#worker.on('error', (error) => {
      // The inbox logs an outage once; BullMQ reports it for every connection, and for every attempt to reconnect.
      if (queue.isReady && !('syscall' in error))
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

  /** Leaves paused handlers out from now on. BullMQ itself gives no worker a job while the whole inbox is paused. */
  obey(pauses: readonly Pause[]): void {
    this.#pausedHandlers = new Set(pauses.map(({ handler }) => handler))
  }

  async #process(job: EventJob): Promise<void> {
    await this.#pauses.known
    const id = job.id as string
    const former = this.#running.get(id)
    if (former !== undefined) {
      // Its lease ran out here unnoticed. The next attempt waits for the end of this one.
      this.#leaseLost(former)
      return postpone(job, retryPauseMs)
    }
    // If this fails, the lease runs out.
    if (this.#isClosed) return releaseJob(job)
    const attempt = await beginAttempt(this.#queue, this.#host, job, this.#isHandlerPaused)
    if (attempt === undefined) return
    this.#running.set(id, attempt)
    attempt.leaseTimer = setTimeout(() => this.#leaseEnded(attempt), this.#leaseMs).unref()
    try {
      await Promise.race([this.#attempts.run(attempt), attempt.stopped])
    } finally {
      this.#running.delete(id)
      clearTimeout(attempt.leaseTimer)
    }
  }

  /**
   * Ends an attempt after its lease, since another process may have the event. Finished handlers are still recorded.
   */
  #leaseEnded(attempt: BullmqAttempt): void {
    if (!attempt.isHandled) this.#leaseLost(attempt)
  }

  #leaseLost(attempt: BullmqAttempt | undefined): void {
    if (attempt === undefined) return
    const { key } = attempt.accepted.event
    this.#host.logger.warn({ key }, 'the lease of an event was lost; another process may be handling it')
    attempt.abort(new WebhookError('lease_lost', 'the lease of the event was lost'))
  }

  /** Stops the handler that runs for an event in this process. Returns `false` if none does. */
  stop(key: string): boolean {
    const attempt = [...this.#running.values()].find(({ accepted }) => accepted.event.key === key)
    return stopRun({ attempt })
  }

  /** Starts no more events, and waits for running ones. Call `release` afterwards. */
  async finish(left: Countdown): Promise<void> {
    const closed = this.#worker.close()
    // Without Redis no job can end, and the worker would use up the whole time to close.
    if (this.#running.size === 0) await within(left(this.#queue.isReady ? idleMs : 0), closed, () => {})
    if (this.#running.size > 0) await within(left(), closed, () => {})
    this.#isClosed = true
  }

  /** Releases the remaining events. */
  async release(left: Countdown): Promise<readonly UnfinishedEvent[]> {
    const unfinished = [...this.#running.values()]
    for (const attempt of unfinished) attempt.abort(new WebhookError('closing', 'the inbox is closing'))
    const released = Promise.allSettled(unfinished.map((attempt) => this.#releaseOne(attempt)))
    await within(left(this.#queue.isReady ? releaseMs : 0), released, () => {})
    this.#live.stop()
    this.#pauses.stop()
    return unfinished.map(({ accepted }) => ({ ...accepted, state: 'running' }))
  }

  async #releaseOne(attempt: BullmqAttempt): Promise<void> {
    await attempt.uncountCrash()
    await attempt.job.moveToWait(attempt.job.token)
  }
}
