import { throttled } from '../../internal/logger.ts'
import { OutageLog } from '../../internal/outage-log.ts'
import { sleep } from '../../internal/timers.ts'
import type { JobAttempt } from '../engine/job.ts'
import { hasEnded, isRelease, type OwedHandlers } from '../engine/owed-handlers.ts'
import { cutOff, type DeadResult, maxCrashes, type RetryResult, type Settling } from '../engine/settling.ts'
import { withoutStack } from '../engine/stored.ts'
import type { InboxHost } from '../inbox.ts'
import { writeLetter } from './dead-letter-row.ts'
import type { SqlJob } from './job.ts'
import type { EventStore, Settled } from './store.ts'

/** Delay before a failed write is retried: the first, and the maximum if the database refuses the write (ms). */
const firstDelayMs = 100
const maxDelayMs = 10_000

/** Records the ends of attempts, retrying until it succeeds: a lost end repeats the event's handlers. */
export class SqlSettling implements Settling<SqlJob> {
  readonly retries = 'anywhere'
  readonly #store: EventStore
  readonly #host: InboxHost
  readonly #owed: OwedHandlers | undefined
  readonly #outage = new OutageLog()
  #unrecorded = 0
  #onSettled: (() => void) | undefined

  constructor(store: EventStore, host: InboxHost, owed: OwedHandlers | undefined) {
    this.#store = store
    this.#host = host
    this.#owed = owed
  }

  begin(attempt: JobAttempt<SqlJob>): Promise<DeadResult | undefined> | undefined {
    const { job } = attempt
    if (job.crashes >= maxCrashes) return Promise.resolve(cutOff(job, this.#host.logger))
    return this.#owed?.check(attempt, job)
  }

  complete(attempt: JobAttempt<SqlJob>, recorded: () => void): void {
    const { job } = attempt
    this.#owed?.ended(attempt, job)
    void this.#record({ kind: 'handled', job, handlers: this.#host.handlersOf(job.accepted.event) }, recorded)
  }

  retry(attempt: JobAttempt<SqlJob>, retry: RetryResult, recorded: () => void): void {
    const { job } = attempt
    const { delayMs, completed, failures, counts } = retry
    if (isRelease(retry)) {
      const awaits = this.#awaited(attempt, completed)
      return void this.#record({ kind: 'release', job, delayMs, completed, awaits }, recorded)
    }
    const failed = failures.length === 0 ? undefined : JSON.stringify(job.failedWith(failures))
    void this.#record({ kind: 'retry', job, delayMs, completed, failed, counts: Number(counts !== false) }, recorded)
  }

  /** Names of owed handlers only other processes have. Empty while this process has handlers left to run. */
  #awaited(attempt: JobAttempt<SqlJob>, completed: readonly string[]): readonly string[] {
    const { job, missing } = attempt
    const isLeft = (name: string) => !hasEnded({ completed, failures: attempt.failures }, name)
    if (this.#host.handlersOf(job.accepted.event).some(isLeft)) return []
    return (job.owed ?? []).filter((name) => isLeft(name) && !missing.includes(name))
  }

  deadLetter(job: SqlJob, { completed, failures }: DeadResult, recorded: () => void): void {
    const { key, accepted, number: attempts } = job
    const failedAttempts = job.failedWith(failures)
    const last = { failures: failures.map(withoutStack), failedAttempts, diedAt: new Date() }
    const letter = writeLetter({ ...accepted, key, attempts, completed, ...last })
    void this.#record({ kind: 'dead', job, completed, letter }, recorded)
  }

  progress(job: SqlJob, completed: readonly string[]): Promise<void> {
    return this.#record({ kind: 'progress', job, completed }, () => {})
  }

  async #record(end: Settled, recorded: () => void): Promise<void> {
    const { job } = end
    this.#unrecorded++
    for (let failures = 0; ; failures++) {
      try {
        const isOurs = await this.#store.settle(end)
        this.#outage.worked()
        // After a lost answer, the record may be our own.
        if (!isOurs && failures === 0 && !job.hasEnded)
          throttled(this.#host.logger).warn(
            { key: job.key },
            'the lease of an event was lost before its result was recorded',
          )
        break
      } catch (error) {
        // Given up, or released on close.
        if (job.hasEnded) break
        const isTransient = this.#store.isTransient(error)
        if (!isTransient) this.#logRefused(job, error)
        await sleep(isTransient ? firstDelayMs : Math.min(firstDelayMs * 2 ** failures, maxDelayMs))
        if (job.hasEnded) break
      }
    }
    recorded()
    if (--this.#unrecorded === 0) this.#onSettled?.()
  }

  #logRefused({ key }: SqlJob, err: unknown): void {
    this.#outage.failed(() =>
      this.#host.logger.error({ err, key }, 'the inbox could not record the result of an event'),
    )
  }

  async settled(): Promise<void> {
    if (this.#unrecorded > 0) await new Promise<void>((resolve) => (this.#onSettled = resolve))
  }
}
