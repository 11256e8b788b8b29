import { WebhookError } from '../../errors.ts'
import { ChurnMap } from '../../internal/churn-map.ts'
import type { Logger } from '../../internal/logger.ts'
import { maxWaitMs } from '../../internal/timers.ts'
import type { UnfinishedEvent } from '../inbox.ts'
import type { InboxStats } from '../reading.ts'
import type { Job, JobEnd } from './job.ts'

/** Memory budget for events (bytes): 64 MiB for 10,000 waiting ones, and room for 1,000 running ones. */
const memoryFor = (maxWaiting: number): number => (maxWaiting + 1_000) * 6_100

/** Every unfinished event, by key. Its duplicates never reach the store. */
export class Jobs<EachJob extends Job = Job> {
  readonly #byKey = new ChurnMap<string, EachJob>()
  #bytes = 0
  #onIdle: (() => void) | undefined

  get size(): number {
    return this.#byKey.size
  }

  get(key: string): EachJob | undefined {
    return this.#byKey.get(key)
  }

  get bytes(): number {
    return this.#bytes
  }

  /** Returns `true` if either the count of waiting events or the memory of all has reached its limit. */
  isFull(waiting: number, maxWaiting: number): boolean {
    return waiting >= maxWaiting || this.#bytes >= memoryFor(maxWaiting)
  }

  add(job: EachJob): void {
    this.#bytes += job.size
    this.#byKey.set(job.key, job)
  }

  *[Symbol.iterator](): IterableIterator<EachJob> {
    for (const [, job] of this.#byKey) yield job
  }

  end(job: EachJob, end: JobEnd): void {
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

  /** Stops all jobs, or those in the given states, and returns the accepted ones. */
  release(states?: readonly Job['state'][]): readonly UnfinishedEvent[] {
    const unfinished: UnfinishedEvent[] = []
    for (const job of this) {
      const { state, shownState } = job
      if (states !== undefined && !states.includes(state)) continue
      job.stop(new WebhookError('closing', 'the inbox is closing'))
      if (state !== 'claiming') unfinished.push({ ...job.accepted, state: shownState })
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

/** Releases what is left when an inbox closes: attempts that ended without a record. Logs them. */
export function releaseUnrecorded(jobs: Pick<Jobs, 'release'>, logger: Logger): readonly UnfinishedEvent[] {
  const unrecorded = jobs.release()
  const keys = unrecorded.map(({ event }) => event.key)
  const message = 'the inbox closed before it could record the end of these events; their handlers may run again'
  if (keys.length > 0) logger.warn({ keys }, message)
  return unrecorded
}

/** Logs each event that a closing inbox released. Another process can claim it. */
export function logReleased(unfinished: readonly UnfinishedEvent[], logger: Logger): void {
  for (const { event, state } of unfinished) {
    const { key, type, mediaId } = event
    logger.warn(
      { key, type, mediaId, state },
      'the inbox closed before the event was handled; another process will handle it',
    )
  }
}
