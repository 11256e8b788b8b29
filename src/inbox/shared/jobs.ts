import { WebhookError } from '../../errors.ts'
import { ChurnMap } from '../../internal/churn-map.ts'
import { longestWaitMs } from '../../internal/timers.ts'
import type { ImmediateResult, UnfinishedEvent } from '../inbox.ts'
import type { Job } from './job.ts'

/** Every event that has not ended, by key. A duplicate of one of them never gets to the store. */
export class Jobs {
  readonly #byKey = new ChurnMap<string, Job>()
  #onIdle: (() => void) | undefined

  get size(): number {
    return this.#byKey.size
  }

  get(key: string): Job | undefined {
    return this.#byKey.get(key)
  }

  add(job: Job): void {
    this.#byKey.set(job.key, job)
  }

  /** The rows of a file that hold them. */
  rows(): ReadonlySet<number> {
    const rows = new Set<number>()
    for (const [, { row }] of this.#byKey) rows.add(row)
    return rows
  }

  /** Ends a job, and tells those who wait for it how. */
  end(job: Job, result: ImmediateResult): void {
    if (!job.hasEnded) this.#byKey.delete(job.key)
    job.end(result)
    if (this.#byKey.size === 0) this.#onIdle?.()
  }

  /** Resolves when no job is left, or after `timeoutMs`. */
  idle(timeoutMs: number): Promise<void> {
    return new Promise((resolve) => {
      if (this.#byKey.size === 0) return resolve()
      const timer = setTimeout(resolve, Math.min(timeoutMs, longestWaitMs))
      this.#onIdle = () => {
        clearTimeout(timer)
        resolve()
      }
    })
  }

  /** Stops the jobs that are left, or those in some states, and says which of the accepted ones had not been handled. */
  giveUp(states?: readonly Job['state'][]): readonly UnfinishedEvent[] {
    const unfinished: UnfinishedEvent[] = []
    for (const [, job] of this.#byKey) {
      const { state } = job
      if (states !== undefined && !states.includes(state)) continue
      job.stop(new WebhookError('closing', 'the inbox is closing'))
      if (state !== 'claiming' && state !== 'recording') unfinished.push({ ...job.accepted, state })
      this.end(job, 'failed')
    }
    return unfinished
  }

  counts(): { waiting: number; running: number; retrying: number } {
    const counts = { waiting: 0, running: 0, retrying: 0 }
    for (const [, { state }] of this.#byKey) {
      if (state === 'retrying') counts.retrying++
      else if (state === 'running' || state === 'recording') counts.running++
      else counts.waiting++
    }
    return counts
  }
}
