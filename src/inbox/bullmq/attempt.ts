import { UnrecoverableError, WaitingError } from 'bullmq'
import { LazyAbort } from '../../internal/lazy-abort.ts'
import type { OwingAttempt, OwingEvent } from '../engine/owed-handlers.ts'
import { reviveAccepted, withFailure } from '../engine/stored.ts'
import type { AcceptedEvent, Attempt, AttemptResult, InboxHost } from '../inbox.ts'
import { parseAgain } from '../operations/dead-letters.ts'
import type { HandlerFailure } from '../reading.ts'
import {
  type EventData,
  isEvent,
  isUnreadable,
  type JobProgress,
  progressOf,
  toEventData,
  toUnreadable,
} from './job.ts'
import type { EventJob, EventQueue } from './queue.ts'

/** An attempt of this process at an event. */
export class BullmqAttempt extends LazyAbort implements Attempt, OwingAttempt, OwingEvent {
  readonly job: EventJob
  readonly accepted: AcceptedEvent
  readonly number: number
  readonly completed: readonly string[]
  readonly owed: readonly string[] | undefined
  run: Attempt['run']
  isPartial = false
  missing: readonly string[] = []
  readonly isPaused: Attempt['isPaused']
  /** The time for which the event is released, in ms, once it is: handlers were left out, and none failed. */
  releasedForMs: number | undefined
  /** `true` once its handlers have ended. */
  isHandled = false
  /** Fires when the lease has ended without a renewal. */
  leaseTimer: NodeJS.Timeout | undefined
  /** Rejects when the attempt is aborted, with the error that tells BullMQ to leave the job alone. */
  readonly stopped: Promise<never>
  readonly #queue: EventQueue
  /** `true` while Redis counts a crash for the event, in case the process ends. */
  #isCounted = false
  #stop: (reason: Error) => void = () => {}

  constructor(queue: EventQueue, job: EventJob, accepted: AcceptedEvent, isPaused: Attempt['isPaused']) {
    super()
    this.isPaused = isPaused
    this.#queue = queue
    this.job = job
    this.accepted = accepted
    this.number = job.attemptsMade + 1
    this.owed = (job.data as Partial<EventData>).owed
    this.completed = progressOf(job.progress).completed
    this.stopped = new Promise((_, reject) => {
      this.#stop = reject
    })
  }

  get owesNothing(): boolean {
    return this.owed?.length === 0
  }

  get failures(): Attempt['failures'] {
    return progressOf(this.job.progress).failedAttempts?.at(-1)?.failures
  }

  async succeeded(handler: string): Promise<void> {
    // If this fails, the end of the attempt records it.
    await this.record([handler]).catch(() => {})
  }

  /** Records which handlers have succeeded and which have failed, unless that is recorded already. */
  async record(completed: readonly string[], failures: readonly HandlerFailure[] = []): Promise<void> {
    const progress = this.#progressWith(completed, failures)
    const isNew = failures.length > 0 || progress.completed.length > progressOf(this.job.progress).completed.length
    if (isNew && !this.aborted) await this.#queue.record(this.job, progress)
  }

  /** Records that the event becomes a dead letter. */
  async recordDead({ completed, failures }: AttemptResult & { status: 'dead' }): Promise<void> {
    const progress = this.#progressWith(completed, failures)
    await this.#queue.record(this.job, { ...progress, failures, stalls: this.job.stalledCounter })
  }

  /** Adds to what is recorded. This version of the program may lack some of the handlers in it. */
  #progressWith(completed: readonly string[], failures: readonly HandlerFailure[]): JobProgress {
    const { completed: before, failedAttempts = [] } = progressOf(this.job.progress)
    return {
      completed: [...new Set([...before, ...completed])],
      failedAttempts: failures.length === 0 ? failedAttempts : withFailure(failedAttempts, this.number, failures),
    }
  }

  /** Counts a crash before the event is handled, since a crashed process cannot. Returns the number of its crashes. */
  countCrash(): Promise<number> {
    this.#isCounted = true
    return this.#queue.countCrash(this.job, 1)
  }

  /** Subtracts the crash again, because the event did not end the process. */
  async uncountCrash(): Promise<void> {
    if (!this.#isCounted) return
    this.#isCounted = false
    try {
      await this.#queue.countCrash(this.job, -1)
    } catch (error) {
      this.#isCounted = true
      throw error
    }
  }

  override abort(reason: Error): void {
    super.abort(reason)
    this.#stop(new WaitingError())
  }
}

/**
 * Begins an attempt at the event of a job. Returns `undefined` if the event is known already. A job without an event fails
 * permanently.
 */
export async function beginAttempt(
  queue: EventQueue,
  host: InboxHost,
  job: EventJob,
  isPaused: Attempt['isPaused'],
): Promise<BullmqAttempt | undefined> {
  if (isRevived(job)) await queue.startAfresh(job)
  const accepted = await readEvent(queue, host, job)
  return accepted && new BullmqAttempt(queue, job, accepted, isPaused)
}

/** Returns `true` if an event is a replayed dead letter. Another program, such as Bull Board, may have replayed it. */
function isRevived({ progress, stalledCounter }: EventJob): boolean {
  const { failures, stalls = stalledCounter } = progressOf(progress)
  return failures !== undefined && stalledCounter <= stalls
}

async function readEvent(queue: EventQueue, host: InboxHost, job: EventJob): Promise<AcceptedEvent | undefined> {
  const { data } = job
  if (isEvent(data)) return reviveAccepted(data)
  if (!isUnreadable(data)) {
    host.logger.error({ job: job.id }, 'a BullMQ job is not an event of this inbox; it stays among the failed jobs')
    throw new UnrecoverableError('no event of this inbox')
  }
  // Another program, such as Bull Board, has retried the dead letter.
  const parsed = await parseAgain(host, toUnreadable(data)).catch((error: unknown) => {
    throw new UnrecoverableError(error instanceof Error ? error.message : String(error))
  })
  return (await queue.convert(job, toEventData(host, parsed))) === 'converted' ? parsed : undefined
}
