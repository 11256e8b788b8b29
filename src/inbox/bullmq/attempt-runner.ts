import { DelayedError, UnrecoverableError, WaitingError } from 'bullmq'
import { measure } from '../../internal/maybe-promise.ts'
import { sleep } from '../../internal/timers.ts'
import { withoutCommand } from '../../storage/reach-redis.ts'
import { isRelease, type OwedHandlers, releaseForMs } from '../engine/owed-handlers.ts'
import { maxCrashes } from '../engine/settling.ts'
import type { AttemptResult, InboxHost } from '../inbox.ts'
import type { HandlerFailure } from '../reading.ts'
import type { BullmqAttempt } from './attempt.ts'
import { applyEffects } from './expectations.ts'
import { Isolation } from './isolation.ts'
import { progressOf } from './job.ts'
import type { EventJob, EventQueue } from './queue.ts'

/** The pause before a failed step in Redis is tried again, in ms. */
export const retryPauseMs = 500

/** Tells BullMQ when to run a job again. */
export class Retry extends Error {
  readonly delayMs: number

  constructor(delayMs: number) {
    super('a handler failed and will run again')
    this.delayMs = delayMs
  }
}

/** Releases a job for the next process. Rejects with the error that tells BullMQ so. */
export async function releaseJob(job: EventJob): Promise<never> {
  await job.moveToWait(job.token)
  throw new WaitingError()
}

/** Postpones a job. Rejects with the error that tells BullMQ so. */
export async function postpone(job: EventJob, delayMs: number): Promise<never> {
  await job.moveToDelayed(Date.now() + delayMs, job.token)
  throw new DelayedError()
}

/** Makes attempts. A suspect runs alone, and the other events run side by side. */
export class AttemptRunner {
  readonly #queue: EventQueue
  readonly #host: InboxHost
  readonly #ttlMs: number
  readonly #owed: OwedHandlers
  readonly #isolation = new Isolation()

  constructor(queue: EventQueue, host: InboxHost, ttlMs: number, owed: OwedHandlers) {
    this.#queue = queue
    this.#host = host
    this.#ttlMs = ttlMs
    this.#owed = owed
  }

  /** Makes the attempt and records its result. Rejects with the error that tells BullMQ what to do next. */
  async run(attempt: BullmqAttempt): Promise<void> {
    const { job } = attempt
    if (job.attemptsStarted > 1 && (await this.#queue.wasHandled(job))) return
    // The process ended while it made the event a dead letter.
    const { failures } = progressOf(job.progress)
    if (failures !== undefined) return this.#end(attempt, failures)
    const { data } = job
    if ('effects' in data)
      await this.#insist(attempt, () => applyEffects(this.#queue, job.id as string, data, this.#ttlMs))
    if (job.stalledCounter === 0) await this.#isolation.beside(() => this.#handleEvent(attempt))
    else await this.#isolation.alone(() => this.#runSuspect(attempt))
    if (attempt.releasedForMs !== undefined) await postpone(job, attempt.releasedForMs)
  }

  /** Handles a suspect. If this process ends meanwhile, the crash stays counted. */
  async #runSuspect(attempt: BullmqAttempt): Promise<void> {
    if (attempt.aborted) return
    const crashes = await attempt.countCrash()
    if (crashes > maxCrashes) {
      const failures = [{ handler: 'none', message: `its handling was cut off ${crashes} times` }]
      return this.#deadLetter(attempt, { status: 'dead', completed: attempt.completed, failures })
    }
    try {
      await this.#handleEvent(attempt)
    } finally {
      if (attempt.aborted) void attempt.uncountCrash().catch(() => {})
      else await this.#insist(attempt, () => attempt.uncountCrash())
    }
  }

  async #handleEvent(attempt: BullmqAttempt): Promise<void> {
    // The event may have waited for its turn.
    if (attempt.aborted) return
    const { job, accepted } = attempt
    await this.#owed.check(attempt, attempt)
    const result = await this.#host.handle(accepted, attempt)
    // The process that has the event now records the result.
    if (attempt.aborted) return
    attempt.isHandled = true
    if (result.status === 'done') {
      this.#owed.ended(attempt, attempt)
      return this.#insist(attempt, () => this.#queue.remember(job, this.#ttlMs))
    }
    if (result.status === 'dead') return this.#deadLetter(attempt, result)
    await this.#insist(attempt, () => attempt.record(result.completed, result.failures))
    if (!isRelease(result)) throw new Retry(Math.ceil(result.delayMs))
    attempt.releasedForMs = Math.ceil(releaseForMs(accepted, attempt.isPartial, job.attemptsStarted - 1))
  }

  async #deadLetter(attempt: BullmqAttempt, result: AttemptResult & { status: 'dead' }): Promise<never> {
    await this.#insist(attempt, () => attempt.recordDead(result))
    return this.#end(attempt, result.failures)
  }

  /** Dead-letters an event after its end was recorded. */
  async #end(attempt: BullmqAttempt, failures: readonly HandlerFailure[]): Promise<never> {
    await this.#insist(attempt, () => this.#queue.rememberDead(attempt.job))
    throw new UnrecoverableError(failures.map(({ handler, message }) => `${handler}: ${message}`).join('; '))
  }

  /** Repeats a step until Redis does it. If the job failed instead, its succeeded handlers would run again. */
  async #insist(attempt: BullmqAttempt, step: () => Promise<void>): Promise<void> {
    while (!attempt.aborted) {
      try {
        return await measure(this.#host.measured, 'record', step)
      } catch (error) {
        const details = { key: attempt.accepted.event.key, err: withoutCommand(error) }
        this.#host.logger.warn(details, 'Redis could not record the result of an event')
        await sleep(retryPauseMs)
      }
    }
  }
}
