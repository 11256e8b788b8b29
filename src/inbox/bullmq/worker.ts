import { UnrecoverableError, WaitingError, Worker } from 'bullmq'
import type { Countdown } from '../../internal/countdown.ts'
import { throttled } from '../../internal/logger.ts'
import { processName } from '../../internal/process-name.ts'
import { withoutCommand } from '../../internal/storage/reach-redis.ts'
import { within } from '../../internal/timers.ts'
import { stopRun } from '../engine/attempts.ts'
import { OwedHandlers } from '../engine/owed-handlers.ts'
import type { InboxHost, UnfinishedEvent } from '../inbox.ts'
import type { Pause } from '../reading.ts'
import { type Attempting, BullmqAttempt, Retry, releaseJob, resetAttempts, retryDelayMs } from './attempt.ts'
import { BackOff } from './back-off.ts'
import { parseOrKeep } from './dead-letters.ts'
import { Isolation } from './isolation.ts'
import { isEvent, isUnreadable, type JobData } from './job.ts'
import { LiveHandlers } from './live-handlers.ts'
import type { EventJob, EventQueue } from './queue.ts'
import { repeat } from './repeat.ts'

export interface BullmqWorkerOptions {
  readonly concurrency: number
  readonly leaseMs: number
  readonly ttlMs: number
}

/** Interval between reads of the pauses (ms). */
const pausesMs = 1_500

/** Longest wait for an idle worker while closing (ms). */
const idleMs = 1_000

/** Longest wait for the release of running events while closing (ms). */
const releaseMs = 1_000

/** Delay before a job restarts if Redis failed to end it (ms). Its event is handled by then. */
const unendedDelayMs = 5_000

/** Ties BullMQ's locks to attempts. A lease counts from when its renewal was sent, not answered. */
class LeasedWorker extends Worker<JobData> {
  /** Attempts at claimed events, by job id. */
  readonly attempts = new Map<string, BullmqAttempt>()

  override async extendJobLocks(jobIds: string[], tokens: string[], duration: number): Promise<string[]> {
    const sentAt = performance.now()
    const failed = await super.extendJobLocks(jobIds, tokens, duration)
    for (const id of jobIds) {
      if (failed.includes(id)) this.attempts.get(id)?.loseLease()
      else this.attempts.get(id)?.lease.renewed(sentAt)
    }
    return failed
  }
}

/** Handles the queue's events in this process: a BullMQ worker whose locks are the leases. */
export class BullmqWorker {
  readonly #queue: EventQueue
  readonly #host: InboxHost
  readonly #live: LiveHandlers
  readonly #pausesKnown: Promise<void>
  #stopReadingPauses = () => {}
  #pausedHandlers: ReadonlySet<string | undefined> = new Set()
  readonly #shared: Attempting
  #isClosed = false
  readonly #worker: LeasedWorker
  readonly #backOff: BackOff

  /** @param readPauses reads the pauses, and calls `applyPauses` if they have changed */
  constructor(
    queue: EventQueue,
    host: InboxHost,
    { concurrency, leaseMs, ttlMs }: BullmqWorkerOptions,
    readPauses: () => Promise<void>,
  ) {
    this.#queue = queue
    this.#host = host
    this.#live = new LiveHandlers(queue, host.handlers, leaseMs, ttlMs)
    this.#shared = {
      ...{ queue, host, leaseMs, ttlMs },
      owed: new OwedHandlers(host, ttlMs, () => this.#live.read()),
      isolation: new Isolation(),
      isPaused: (handler) => this.#pausedHandlers.has(handler),
      // Back off, or an idle process would keep taking the event before the busy one that has the handler.
      released: (inVain) => (inVain ? this.#backOff.grow() : this.#backOff.reset()),
    }
    this.#pausesKnown = new Promise((known) => {
      // On failure the last known pauses hold. The inbox logs outages.
      this.#stopReadingPauses = repeat(async () => {
        await readPauses().then(known, () => {})
        return pausesMs
      })
    })
    this.#worker = new LeasedWorker(queue.jobs.name, (job) => this.#process(job), {
      connection: queue.client,
      name: processName,
      concurrency,
      lockDuration: leaseMs,
      lockRenewTime: Math.ceil(leaseMs / 3),
      // Another process takes an event over after two checks without a lease.
      stalledInterval: Math.ceil(leaseMs / 2),
      // Applies while Redis is disconnected.
      runRetryDelay: retryDelayMs,
      // We count crashes ourselves, to dead-letter the event.
      maxStalledCount: Number.MAX_SAFE_INTEGER,
      settings: {
        backoffStrategy: (_attempts, _type, error) => (error instanceof Retry ? error.delayMs : unendedDelayMs),
      },
    })
    this.#backOff = new BackOff(this.#worker)
    for (const recorded of ['completed', 'failed'] as const) this.#worker.on(recorded, () => this.#backOff.reset())
    this.#worker.on('error', (error) => {
      // BullMQ would ask again at once, thousands of times a second.
      if (queue.refusals.note(error) || !queue.isReady) return this.#backOff.grow()
      // BullMQ reports an outage for every connection and every reconnect; the inbox logs it once.
      if (!('syscall' in error)) throttled(host.logger).warn({ err: withoutCommand(error) }, 'BullMQ reported an error')
    })
  }

  /** The attempts of this process, by job id. */
  get running(): Map<string, BullmqAttempt> {
    return this.#worker.attempts
  }

  /** Publishes this process's handlers if changed. Call it before another process can get an event that owes them. */
  publish(): Promise<unknown> | undefined {
    return this.#live.publish()
  }

  /** Skips paused handlers from now on. While the whole inbox is paused, BullMQ gives no worker a job. */
  applyPauses(pauses: readonly Pause[]): void {
    this.#pausedHandlers = new Set(pauses.map(({ handler }) => handler))
  }

  async #process(job: EventJob): Promise<void> {
    const { data } = job
    if (isUnreadable(data)) return parseOrKeep(this.#queue, this.#host, data, this.#shared.ttlMs)
    if (isEvent(data)) return this.#handle(job)
    throttled(this.#host.logger).error(
      { job: job.id },
      'a BullMQ job is not an event of this inbox; it stays in the failed jobs',
    )
    throw new UnrecoverableError('not an event of this inbox')
  }

  async #handle(job: EventJob): Promise<void> {
    const id = job.id as string
    const previous = this.running.get(id)
    if (previous !== undefined) {
      // Its lease expired unnoticed. Wait for this attempt to end before the next one.
      previous.loseLease()
      return releaseJob(this.#queue, job, retryDelayMs)
    }
    await resetAttempts(this.#queue, job)
    const attempt = new BullmqAttempt(job, this.#shared)
    this.running.set(id, attempt)
    try {
      await Promise.race([this.#run(attempt), attempt.stopped])
      // Returning would make BullMQ complete it.
      if (attempt.aborted) throw new WaitingError()
    } finally {
      this.running.delete(id)
      attempt.lease.stop()
      const { key } = attempt.accepted.event
      const lost = 'the lease of an event was lost; another process may be handling it'
      if (attempt.hasLostLease) throttled(this.#host.logger).warn({ key }, lost)
    }
  }

  async #run(attempt: BullmqAttempt): Promise<void> {
    const { job, lease } = attempt
    const { leaseMs } = this.#shared
    // Set by BullMQ when it sends the claim.
    const sentAgoMs = Math.max(0, Date.now() - (job.processedOn as number))
    if (sentAgoMs < leaseMs) lease.renewed(performance.now() - sentAgoMs)
    // A claim sent during an outage may be answered after its lease, although Redis counts from later on. Renew it.
    else await this.#worker.extendJobLocks([job.id as string], [job.token as string], leaseMs).catch(() => {})
    await this.#pausesKnown
    // On failure, the lease expires.
    if (this.#isClosed) return attempt.release()
    return attempt.make()
  }

  /** Returns `false` if no handler runs for the event here. */
  stop(key: string): boolean {
    const attempt = [...this.running.values()].find(({ accepted }) => accepted.event.key === key)
    return stopRun(attempt)
  }

  /** Starts no more events and waits for running ones. Call `release` afterwards. */
  async finish(left: Countdown): Promise<void> {
    this.#backOff.stop()
    const closed = this.#worker.close()
    // Without Redis no job can end; the worker would use up the whole time.
    if (this.running.size === 0) await within(left(this.#queue.isReady ? idleMs : 0), closed, () => {})
    if (this.running.size > 0) await within(left(), closed, () => {})
    this.#isClosed = true
  }

  async release(left: Countdown): Promise<readonly UnfinishedEvent[]> {
    const unfinished = [...this.running.values()]
    const released = Promise.allSettled(unfinished.map((attempt) => attempt.release()))
    await within(left(this.#queue.isReady ? releaseMs : 0), released, () => {})
    this.#live.stop()
    this.#stopReadingPauses()
    return unfinished.map(({ accepted }) => ({ ...accepted, state: 'running' }))
  }
}
