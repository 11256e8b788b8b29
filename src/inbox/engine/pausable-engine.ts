import { WebhookError } from '../../errors.ts'
import type { AttemptResult } from '../inbox.ts'
import type { Pause } from '../reading.ts'
import { Engine, type EngineOptions } from './engine.ts'
import type { Job, JobAttempt } from './job.ts'
import type { Jobs } from './jobs.ts'
import { isRelease, releaseForMs } from './owed-handlers.ts'
import { UnrecordedEnds } from './unrecorded-ends.ts'

export interface PausableEngineOptions<EachJob extends Job> extends EngineOptions<EachJob> {
  /** Called when a straggler has ended. */
  readonly freed?: () => void
  /**
   * Maximum number of events whose last attempt is not recorded. A crash repeats their handlers.
   * @defaultValue 64
   */
  readonly maxUnrecorded?: number
}

/**
 * An engine over storage that can fail and that stores pauses. Starts nothing while paused or while too many attempts
 * are unrecorded, and gives up jobs when the lease expires. A class of its own so the memory inbox needn't bundle it.
 */
export class PausableEngine<EachJob extends Job> extends Engine<EachJob> {
  readonly #concurrency: number
  readonly #unrecorded: UnrecordedEnds<EachJob>
  #isPaused = false
  #pausedHandlers: ReadonlySet<string | undefined> = new Set()
  readonly #isHandlerPaused = (handler: string): boolean => this.#pausedHandlers.has(handler)
  /** Attempts held back by a pause that came between their turn and their start. */
  #held: JobAttempt<EachJob>[] = []
  readonly #jobs: Jobs<EachJob>
  /** Abandoned jobs whose handlers have not obeyed the abort yet. */
  readonly #stragglers = new Set<Job>()
  readonly #freed: (() => void) | undefined

  constructor(options: PausableEngineOptions<EachJob>) {
    const unrecorded = new UnrecordedEnds(options.settling, () => this.#startOrHold(), options.maxUnrecorded ?? 64)
    super({ ...options, settling: unrecorded })
    this.#jobs = options.jobs
    this.#freed = options.freed
    this.#concurrency = options.concurrency
    this.#unrecorded = unrecorded
  }

  get isPaused(): boolean {
    return this.#isPaused
  }

  get hasPauses(): boolean {
    return this.#pausedHandlers.size > 0
  }

  /** Applies pauses: starts nothing while the inbox is paused, and makes attempts skip paused handlers. */
  applyPauses(pauses: readonly Pause[]): void {
    this.#pausedHandlers = new Set(pauses.map(({ handler }) => handler))
    this.#isPaused = this.#pausedHandlers.has(undefined)
    this.#startOrHold()
    if (!this.#isPaused) for (const attempt of this.#held.splice(0)) this.run(attempt)
    // Their attempts will skip the paused handler.
    for (const job of this.lanes.parked) if (this.#pausedHandlers.has(job.attempt?.parked?.handler)) this.unpark(job)
  }

  giveUp(jobs: Iterable<EachJob>, message = 'the lease of the event was lost'): void {
    const error = new WebhookError('lease_lost', message)
    for (const job of jobs) {
      if (job.attempt?.run !== undefined) this.#stragglers.add(job)
      job.stop(error)
      this.#jobs.end(job, 'lost')
    }
  }

  /** Lanes blocked by stragglers. Another process can run their next jobs sooner. */
  blockedLanes(): readonly string[] {
    return Array.from(this.#stragglers, ({ lane }) => lane)
  }

  #startOrHold(): void {
    this.lanes.limit(this.#isPaused || this.#unrecorded.isFull ? 0 : this.#concurrency)
    this.lanes.schedule()
  }

  protected override run(attempt: JobAttempt<EachJob>): void {
    const { job } = attempt
    // Only a lost lease aborts an attempt that has not begun.
    if (attempt.aborted && !job.hasEnded) this.#jobs.end(job, 'lost')
    attempt.isPaused = this.#isHandlerPaused
    attempt.uncounted = job.failedAttempts.filter(({ number }) => number === attempt.number).length
    if (job.attempt === attempt && !job.hasEnded) job.state = this.#isPaused ? 'waiting' : 'running'
    if (this.#isPaused) this.#held.push(attempt)
    else super.run(attempt)
  }

  protected override settle(attempt: JobAttempt<EachJob>, result: AttemptResult): void {
    if (this.#stragglers.delete(attempt.job)) this.#freed?.()
    if (result.status !== 'retry' || !isRelease(result)) return super.settle(attempt, result)
    const { job, isElsewhere } = attempt
    const delayMs = result.delayMs || releaseForMs(job.accepted, isElsewhere, job.releases)
    super.settle(attempt, { ...result, delayMs })
  }

  override stop(releaseRetries?: () => void): void {
    super.stop(releaseRetries)
    this.#held = []
  }
}
