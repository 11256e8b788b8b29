import { WaitingError } from 'bullmq'
import { LazyAbort } from '../../internal/lazy-abort.ts'
import { withFailure } from '../engine/failed-attempts.ts'
import type { OwingAttempt, OwingEvent } from '../engine/owed-handlers.ts'
import type { AcceptedEvent, Attempt, AttemptResult } from '../inbox.ts'
import type { FailedAttempt, HandlerFailure } from '../reading.ts'
import { type EventData, type JobProgress, progressOf } from './job.ts'
import type { EventJob, EventQueue } from './queue.ts'

/** An attempt of this process at an event. */
export class BullmqAttempt extends LazyAbort implements Attempt, OwingAttempt, OwingEvent {
  readonly job: EventJob
  readonly accepted: AcceptedEvent
  readonly number: number
  readonly completed: readonly string[]
  readonly owed: readonly string[] | undefined
  isPartial = false
  missing: readonly string[] = []
  /** `true` once the handlers of this process have succeeded, and another process has to run the rest. */
  isReleased = false
  /** `true` while Redis counts a crash for the event, in case the process ends. */
  isCounted = false
  /** `true` once its handlers have ended. */
  isHandled = false
  /** Rejects when the attempt is aborted, with the error that tells BullMQ to leave the job alone. */
  readonly stopped: Promise<never>
  readonly #queue: EventQueue
  #recorded: readonly string[]
  readonly #failedBefore: readonly FailedAttempt[]
  #stop: (reason: Error) => void = () => {}

  constructor(queue: EventQueue, job: EventJob, accepted: AcceptedEvent) {
    super()
    this.#queue = queue
    this.job = job
    this.accepted = accepted
    this.number = job.attemptsMade + 1
    this.owed = (job.data as Partial<EventData>).owed
    const { completed, failedAttempts = [] } = progressOf(job.progress)
    this.completed = completed
    this.#recorded = completed
    this.#failedBefore = failedAttempts
    this.stopped = new Promise((_, reject) => {
      this.#stop = reject
    })
  }

  async succeeded(handler: string): Promise<void> {
    // If this fails, the end of the attempt records it.
    await this.record([...this.#recorded, handler]).catch(() => {})
  }

  /** Records which handlers have succeeded and which have failed, unless that is recorded already. */
  async record(completed: readonly string[], failures: readonly HandlerFailure[] = []): Promise<void> {
    const progress = this.#progressWith(completed, failures)
    if (this.aborted || (failures.length === 0 && progress.completed.length === this.#recorded.length)) return
    await this.#queue.record(this.job, progress)
    this.#recorded = progress.completed
  }

  /** Records that the event becomes a dead letter. */
  async recordDead({ completed, failures }: AttemptResult & { status: 'dead' }): Promise<void> {
    const progress = this.#progressWith(completed, failures)
    await this.#queue.record(this.job, { ...progress, failures, stalls: this.job.stalledCounter })
  }

  /** Adds the handlers that an attempt has recorded. This version of the program may lack some of them. */
  #progressWith(completed: readonly string[], failures: readonly HandlerFailure[]): JobProgress {
    const failed = this.#failedBefore
    return {
      completed: [...new Set([...this.#recorded, ...completed])],
      failedAttempts: failures.length === 0 ? failed : withFailure(failed, this.number, failures),
    }
  }

  override abort(reason: Error): void {
    super.abort(reason)
    this.#stop(new WaitingError())
  }
}
