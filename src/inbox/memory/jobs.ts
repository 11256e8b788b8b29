import { WebhookError } from '../../errors.ts'
import { ChurnMap } from '../../internal/churn-map.ts'
import { maxWaitMs } from '../../internal/timers.ts'
import type { UnfinishedEvent } from '../inbox.ts'
import type { InboxStats } from '../reading.ts'
import type { Job, JobEnd } from './job.ts'

/** Memory budget for events (bytes): 64 MiB for 10,000 waiting ones, and room for 1,000 running ones. */
const memoryFor = (maxWaiting: number): number => (maxWaiting + 1_000) * 6_100

/** Every unfinished event, by key. */
export class Jobs {
  readonly #byKey = new ChurnMap<string, Job>()
  #bytes = 0
  #onIdle: (() => void) | undefined

  get size(): number {
    return this.#byKey.size
  }

  get(key: string): Job | undefined {
    return this.#byKey.get(key)
  }

  /** Returns `true` if either the count of waiting events or the memory of all, with `bytes` more, has reached its limit. */
  isFull(waiting: number, maxWaiting: number, bytes: number): boolean {
    return waiting >= maxWaiting || this.#bytes + bytes >= memoryFor(maxWaiting)
  }

  add(job: Job): void {
    this.#bytes += job.size
    this.#byKey.set(job.key, job)
  }

  *[Symbol.iterator](): IterableIterator<Job> {
    for (const [, job] of this.#byKey) yield job
  }

  end(job: Job, end: JobEnd): void {
    if (this.#byKey.get(job.key) === job) {
      this.#byKey.delete(job.key)
      this.#bytes -= job.size
    }
    job.end(end)
    if (this.#byKey.size === 0) this.#onIdle?.()
  }

  /** Resolves when no jobs are left, or after `timeoutMs`. */
  idle(timeoutMs: number): Promise<void> {
    return new Promise((resolve) => {
      if (this.#byKey.size === 0) return resolve()
      const timer = setTimeout(resolve, Math.min(timeoutMs, maxWaitMs))
      this.#onIdle = () => {
        clearTimeout(timer)
        resolve()
      }
    })
  }

  /** Stops all jobs and returns their events. */
  endAll(): readonly UnfinishedEvent[] {
    const unfinished: UnfinishedEvent[] = []
    for (const job of this) {
      job.stop(new WebhookError('closing', 'the inbox is closing'))
      unfinished.push({ ...job.accepted, state: job.shownState })
      this.end(job, 'closing')
    }
    return unfinished
  }

  counts(): Omit<InboxStats, 'deadLetters'> {
    const counts = { waiting: 0, running: 0, retrying: 0 }
    let oldest: number | undefined
    for (const { shownState, since } of this) {
      counts[shownState]++
      if (shownState === 'waiting') oldest = Math.min(oldest ?? since, since)
    }
    return oldest === undefined ? counts : { ...counts, oldestWaitingAt: new Date(oldest) }
  }
}
