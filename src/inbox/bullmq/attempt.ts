import { DelayedError, UnrecoverableError, WaitingError } from 'bullmq'
import { WebhookError } from '../../errors.ts'
import { LazyAbort } from '../../internal/lazy-abort.ts'
import { LeaseClock } from '../../internal/lease-clock.ts'
import { measure } from '../../internal/maybe-promise.ts'
import { sleep } from '../../internal/timers.ts'
import { maxCrashes } from '../engine/attempts.ts'
import {
  isRelease,
  type OwedHandlers,
  type OwingAttempt,
  type OwingEvent,
  releaseForMs,
} from '../engine/owed-handlers.ts'
import { reviveAccepted, withFailure, withoutStack } from '../engine/stored.ts'
import type { AcceptedEvent, Attempt, InboxHost } from '../inbox.ts'
import type { HandlerFailure } from '../reading.ts'
import { applyChanges } from './expectations.ts'
import type { Isolation } from './isolation.ts'
import { type EventData, type JobProgress, readProgress } from './job.ts'
import type { EventJob, EventQueue } from './queue.ts'

/** First delay before a failed Redis step is retried (ms). */
export const retryDelayMs = 500

/** Longest such delay (ms). */
const maxDelayMs = 4_000

/** First and longest release to other processes (ms): this one may win the event again, and polls less meanwhile. */
const firstReleaseMs = 20
const maxReleaseMs = 1_000

/** Tells BullMQ when to run a job again. */
export class Retry extends Error {
  readonly delayMs: number

  constructor(delayMs: number) {
    super('a handler failed and will run again')
    this.delayMs = delayMs
  }
}

/** Releases a job, then rejects with the error that makes BullMQ leave it alone. */
export async function releaseJob(queue: EventQueue, job: EventJob, delayMs: number): Promise<never> {
  await queue.release(job, delayMs)
  throw new DelayedError()
}

export interface Attempting {
  readonly queue: EventQueue
  readonly host: InboxHost
  readonly leaseMs: number
  readonly ttlMs: number
  readonly owed: OwedHandlers
  /** Runs suspects alone, other events side by side. */
  readonly isolation: Isolation
  readonly isPaused: (handler: string) => boolean
  /** Called when an event is released to other processes. `inVain`: no handler completed here. */
  readonly released: (inVain: boolean) => void
}

export class BullmqAttempt extends LazyAbort implements Attempt, OwingAttempt, OwingEvent {
  readonly job: EventJob
  readonly accepted: AcceptedEvent
  readonly number: number
  readonly completed: readonly string[]
  readonly owed: readonly string[] | undefined
  readonly lease: LeaseClock
  run: Attempt['run']
  lacksHandlers = false
  isElsewhere = false
  missing: readonly string[] = []
  readonly isPaused: (handler: string) => boolean
  hasLostLease = false
  /** Rejects on abort, with the error that makes BullMQ leave the job alone. */
  readonly stopped: Promise<never>
  readonly #shared: Attempting
  /** Earlier attempts cut off while the event ran alone. */
  readonly #crashes: number
  /** Set once the handlers have ended: the result is recorded even after the lease. */
  #isHandled = false
  #stop: (reason: Error) => void = () => {}

  constructor(job: EventJob, shared: Attempting) {
    super()
    const data = job.data as EventData
    const { attempts, completed, crashes } = readProgress(data)
    this.job = job
    this.accepted = reviveAccepted(data)
    this.number = attempts + 1
    this.completed = completed
    this.owed = data.owed
    this.lease = new LeaseClock(shared.leaseMs, () => this.#isHandled || this.loseLease())
    this.isPaused = shared.isPaused
    this.stopped = new Promise((_, reject) => {
      this.#stop = reject
    })
    this.#shared = shared
    this.#crashes = crashes
  }

  override get aborted(): boolean {
    // After a suspension, callers may run before the lease's timer.
    if (!super.aborted && !this.#isHandled && this.lease.isOver) this.loseLease()
    return super.aborted
  }

  /** Aborts the attempt: another process may have the event. */
  loseLease(): void {
    this.hasLostLease = true
    this.abort(new WebhookError('lease_lost', 'the lease of the event was lost'))
  }

  override abort(reason: Error): void {
    super.abort(reason)
    this.#stop(new WaitingError())
  }

  get owesNothing(): boolean {
    return this.owed?.length === 0
  }

  get failures(): Attempt['failures'] {
    return this.#progress.failedAttempts.at(-1)?.failures
  }

  get #progress(): JobProgress {
    return readProgress(this.job.data)
  }

  /** Makes the attempt and records its result. Rejects with the error that tells BullMQ what to do next. */
  async make(): Promise<void> {
    const { queue, isolation, ttlMs } = this.#shared
    const { job } = this
    if (await queue.isHandled(job)) return
    const { failures, stalls } = this.#progress
    // An earlier process crashed while dead-lettering the event.
    if (failures !== undefined) return failJob(failures)
    const { changes } = job.data as EventData
    if (changes !== undefined) await this.#persist(() => applyChanges(queue, this.accepted, changes, ttlMs))
    // A process crashed while it handled the event.
    if (job.stalledCounter > stalls) return isolation.alone(() => this.#handleSuspect())
    return isolation.beside(() => this.#handle())
  }

  /** Handles a suspect. Counts the crash up front, as a crashed process can't; recording the result undoes it. */
  async #handleSuspect(): Promise<void> {
    const crashes = this.#crashes + 1
    await this.#record({ crashes })
    if (crashes <= maxCrashes) return this.#handle()
    const message = `the process crashed ${crashes} times while handling it`
    return this.#deadLetterUnmade(this.completed, [{ handler: 'none', message }])
  }

  async #handle(): Promise<void> {
    // The event may have waited for its turn.
    if (this.aborted) return
    const { queue, host, ttlMs, owed } = this.#shared
    const dead = await owed.check(this, this)
    if (dead !== undefined) return this.#deadLetterUnmade(dead.completed, dead.failures)
    const result = await host.handle(this.accepted, this)
    // Whoever holds the event now records the result.
    if (this.aborted) return
    this.#isHandled = true
    if (result.status === 'done') {
      owed.ended(this, this)
      return this.#persist(() => queue.end(this.job, this.accepted.event, ttlMs))
    }
    const { completed, failures } = result
    if (result.status === 'dead') return this.#deadLetter(completed, failures)
    if (isRelease(result)) return this.#release(completed)
    await this.#persist(() => this.#recordFailed(completed, failures))
    throw new Retry(Math.ceil(result.delayMs))
  }

  /** Makes a dead letter of an event whose attempt is not made, so that nothing else reports it. */
  #deadLetterUnmade(completed: readonly string[], failures: readonly HandlerFailure[]): Promise<never> {
    this.#shared.host.deadLettered?.(this.accepted, this.number)
    return this.#deadLetter(completed, failures)
  }

  async #deadLetter(completed: readonly string[], failures: readonly HandlerFailure[]): Promise<never> {
    const { stalledCounter: stalls } = this.job
    await this.#persist(() => this.#recordFailed(completed, failures, { failures: failures.map(withoutStack), stalls }))
    return failJob(failures)
  }

  /** Releases the event: handlers were skipped, and none failed. Other processes have them, or they are paused. */
  async #release(completed: readonly string[]): Promise<never> {
    const { queue, released } = this.#shared
    const { isElsewhere, job } = this
    await this.#persist(() => this.#record({ completed, crashes: this.#crashes }))
    if (isElsewhere) released(completed.length === this.completed.length)
    const elsewhereMs = Math.min(maxReleaseMs, firstReleaseMs * 2 ** (job.attemptsStarted - 1))
    return releaseJob(queue, job, isElsewhere ? elsewhereMs : Math.ceil(releaseForMs(this.accepted, false)))
  }

  /** Releases the job when this process closes. Not a crash. */
  async release(): Promise<void> {
    const recorded = this.#record({ crashes: this.#crashes })
    this.abort(new WebhookError('closing', 'the inbox is closing'))
    await recorded
    await this.job.moveToWait(this.job.token)
  }

  async succeeded(handler: string): Promise<void> {
    // If this fails, the end of the attempt records it.
    await this.#record({ completed: [handler] }).catch(() => {})
  }

  async #record({ completed = [], ...changes }: Partial<JobProgress>): Promise<void> {
    const before = this.#progress
    // Merge: this version of the program may lack some recorded handlers.
    const progress = { ...before, ...changes, completed: [...new Set([...before.completed, ...completed])] }
    const isChanged = JSON.stringify(progress) !== JSON.stringify(before)
    if (isChanged && !this.aborted) await this.#shared.queue.record(this.job, progress)
  }

  #recordFailed(
    completed: readonly string[],
    failures: readonly HandlerFailure[],
    changes: Partial<JobProgress> = {},
  ): Promise<void> {
    const { failedAttempts: earlier } = this.#progress
    const failedAttempts = failures.length === 0 ? earlier : withFailure(earlier, this.number, failures)
    return this.#record({ ...changes, attempts: this.number, completed, crashes: this.#crashes, failedAttempts })
  }

  /** Retries a step until Redis takes it. Failing the job instead would rerun its succeeded handlers. */
  async #persist(step: () => Promise<void>): Promise<void> {
    const { queue, host } = this.#shared
    for (let delayMs = retryDelayMs; !this.aborted; delayMs = Math.min(2 * delayMs, maxDelayMs)) {
      try {
        return await measure(host.measured, 'record', step)
      } catch (error) {
        queue.refusals.note(error)
        await sleep(delayMs)
      }
    }
  }
}

/** Fails the job, which makes it a dead letter. Its result must be recorded already. */
function failJob(failures: readonly HandlerFailure[]): never {
  throw new UnrecoverableError(failures.map(({ handler, message }) => `${handler}: ${message}`).join('; '))
}

/**
 * Resets the attempts of a replayed dead letter; another program, such as Bull Board, may have replayed it. A stall
 * more than recorded means a crash while dead-lettering, not a replay.
 */
export async function resetAttempts(queue: EventQueue, job: EventJob): Promise<void> {
  const progress = readProgress(job.data)
  const { stalledCounter: stalls } = job
  if (progress.failures !== undefined && stalls <= progress.stalls)
    await queue.record(job, { ...progress, attempts: 0, crashes: 0, failures: undefined, stalls })
}
