import { WaitingError } from 'bullmq'
import { LazyAbort } from '../../internal/lazy-abort.ts'
import type { AcceptedEvent, Attempt } from '../inbox.ts'
import { progressOf } from './event.ts'
import type { EventJob } from './queue.ts'

/** An attempt of this process at an event. */
export class BullmqAttempt extends LazyAbort implements Attempt {
  readonly job: EventJob
  readonly accepted: AcceptedEvent
  readonly number: number
  readonly completed: readonly string[]
  /** Rejects when it is aborted, with what lets BullMQ take its hands off the job. */
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
    // What is not kept now is kept at the end of the attempt.
    await this.record([...this.#recorded, handler]).catch(() => {})
  }

  /** Keeps which handlers have succeeded, unless that is known already. */
  async record(completed: readonly string[]): Promise<void> {
    if (this.aborted || completed.length === this.#recorded.length) return
    await this.job.updateProgress({ completed })
    this.#recorded = completed
  }

  override abort(reason: Error): void {
    super.abort(reason)
    this.#stop(new WaitingError())
  }
}
