import { DelayedError, UnrecoverableError, WaitingError } from 'bullmq'
import type { Logger } from '../../internal/logger.ts'
import { measure } from '../../internal/maybe-promise.ts'
import { sleep } from '../../internal/timers.ts'
import { withoutCommand } from '../../storage/reach-redis.ts'
import { maxCrashes } from '../engine/crash-limit.ts'
import { type OwedHandlers, releaseForMs } from '../engine/owed-handlers.ts'
import type { AttemptResult, Handle, InboxHost } from '../inbox.ts'
import type { HandlerFailure } from '../reading.ts'
import type { BullmqAttempt } from './attempt.ts'
import { Isolation } from './isolation.ts'
import { progressOf } from './job.ts'
import type { EventQueue } from './queue.ts'

/** The pause before a failed step in Redis is tried again, in ms. */
export const retryPauseMs = 500

/** The pause before this process passes an event on, in ms. Another waiting process can take the event meanwhile. */
const passOnMs = 20

/** Tells BullMQ when to run a job again. */
export class Retry extends Error {
  readonly delayMs: number

  constructor(delayMs: number) {
    super('a handler failed and will run again')
    this.delayMs = delayMs
  }
}

/** Makes attempts. A suspect runs alone, and the other events run side by side. */
export class AttemptRunner {
  readonly #queue: EventQueue
  readonly #handle: Handle
  readonly #logger: Logger
  readonly #ttlMs: number
  readonly #measured: InboxHost['measured']
  readonly #owed: OwedHandlers
  readonly #isolation = new Isolation()

  constructor(queue: EventQueue, { handle, logger, measured }: InboxHost, ttlMs: number, owed: OwedHandlers) {
    this.#queue = queue
    this.#handle = handle
    this.#logger = logger
    this.#ttlMs = ttlMs
    this.#measured = measured
    this.#owed = owed
  }

  /** Makes the attempt and records its result. Rejects with the error that tells BullMQ what to do next. */
  async run(attempt: BullmqAttempt): Promise<void> {
    const { job } = attempt
    if (job.attemptsStarted > 1 && (await this.#queue.wasHandled(job))) return
    // The process ended while it made the event a dead letter.
    const { failures } = progressOf(job.progress)
    if (failures !== undefined) return this.#end(attempt, failures)
    if (job.stalledCounter === 0) await this.#isolation.beside(() => this.#handleEvent(attempt))
    else await this.#isolation.alone(() => this.#runSuspect(attempt))
    if (attempt.isReleased) await this.#release(attempt)
  }

  /**
   * Leaves the event to the other processes, without counting the attempt. This process is often the first to get it
   * again. Every second time it therefore passes the event on, and the longest waiting process gets it.
   */
  async #release({ job, accepted }: BullmqAttempt): Promise<never> {
    if (job.attemptsStarted % 2 === 0) {
      await sleep(passOnMs)
      await job.moveToWait(job.token)
      throw new WaitingError()
    }
    await job.moveToDelayed(Date.now() + releaseForMs(accepted), job.token)
    throw new DelayedError()
  }

  /** Handles a suspect. If this process ends meanwhile, the crash stays counted. */
  async #runSuspect(attempt: BullmqAttempt): Promise<void> {
    if (attempt.aborted) return
    attempt.isCounted = true
    const crashes = await this.#queue.countCrash(attempt.job, 1)
    if (crashes > maxCrashes) {
      const failures = [{ handler: 'none', message: `its handling was cut off ${crashes} times` }]
      return this.#deadLetter(attempt, { status: 'dead', completed: attempt.completed, failures })
    }
    try {
      await this.#handleEvent(attempt)
    } finally {
      if (attempt.aborted) void this.uncountCrash(attempt).catch(() => {})
      else await this.#insist(attempt, () => this.uncountCrash(attempt))
    }
  }

  /** Subtracts the crash again, because the suspect did not end the process. */
  async uncountCrash(attempt: BullmqAttempt): Promise<void> {
    if (!attempt.isCounted) return
    attempt.isCounted = false
    try {
      await this.#queue.countCrash(attempt.job, -1)
    } catch (error) {
      attempt.isCounted = true
      throw error
    }
  }

  async #handleEvent(attempt: BullmqAttempt): Promise<void> {
    // The event may have waited for its turn.
    if (attempt.aborted) return
    const { job, accepted } = attempt
    await this.#owed.check(attempt, attempt)
    const result = await this.#handle(accepted, attempt)
    // The process that has the event now records the result.
    if (attempt.aborted) return
    attempt.isHandled = true
    if (result.status === 'done') {
      this.#owed.ended(attempt, attempt)
      return this.#insist(attempt, () => this.#queue.remember(job, this.#ttlMs))
    }
    if (result.status === 'dead') return this.#deadLetter(attempt, result)
    await this.#insist(attempt, () => attempt.record(result.completed, result.failures))
    attempt.isReleased = attempt.isPartial && result.failures.length === 0
    if (attempt.isReleased) return
    throw new Retry(Math.ceil(result.delayMs))
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
        return await measure(this.#measured, 'record', step)
      } catch (error) {
        this.#logger.warn(
          { key: attempt.accepted.event.key, err: withoutCommand(error) },
          'Redis could not record the result of an event',
        )
        await new Promise((resolve) => setTimeout(resolve, retryPauseMs))
      }
    }
  }
}
