import { WaitingError } from 'bullmq'
import { LazyAbort } from '../../internal/lazy-abort.ts'
import type { AcceptedEvent, Attempt } from '../inbox.ts'
import { progressOf } from './job-data.ts'
import type { EventJob } from './queue.ts'

/** An attempt of this process at an event. */
export class BullmqAttempt extends LazyAbort implements Attempt {
  readonly job: EventJob
  readonly accepted: AcceptedEvent
  readonly number: number
  readonly completed: readonly string[]
  /** `true` while Redis holds the event responsible, should the process end. */
  isCharged = false
  /** Rejects when the attempt is aborted, with the error that tells BullMQ to leave the job alone. */
  readonly stopped: Promise<never>
  #recorded: readonly string[]
  #stop: (reason: Error) => void = () => {}

  constructor(job: EventJob, accepted: AcceptedEvent) {
    super()
    this.job = job
    this.accepted = accepted
    this.number = job.attemptsMade + 1
    this.completed = progressOf(job.progress).completed
    this.#recorded = this.completed
    this.stopped = new Promise((_, reject) => {
      this.#stop = reject
    })
  }

  async succeeded(handler: string): Promise<void> {
    // If this fails, the end of the attempt records it.
    await this.record([...this.#recorded, handler]).catch(() => {})
  }

  /** Records which handlers have succeeded, unless that is recorded already. */
  async record(completed: readonly string[]): Promise<void> {
    const all = this.withRecorded(completed)
    if (this.aborted || all.length === this.#recorded.length) return
    await this.job.updateProgress({ completed: all })
    this.#recorded = all
  }

  /** Adds the handlers that an attempt has recorded: another version of the program can have them, and this one not. */
  withRecorded(completed: readonly string[]): readonly string[] {
    return [...new Set([...this.#recorded, ...completed])]
  }

  override abort(reason: Error): void {
    super.abort(reason)
    this.#stop(new WaitingError())
  }
}
