import type { AttemptResult } from '../inbox.ts'
import type { Pause } from '../reading.ts'
import { Engine, type EngineOptions } from './engine.ts'
import type { Job, JobAttempt } from './job.ts'
import { isRelease, releaseForMs } from './owed-handlers.ts'

/** An engine that operators can pause, for an inbox that stores pauses. The memory inbox need not bundle it. */
export class PausableEngine<EachJob extends Job> extends Engine<EachJob> {
  readonly #concurrency: number
  #isPaused = false
  #pausedHandlers: ReadonlySet<string | undefined> = new Set()
  readonly #isHandlerPaused = (handler: string): boolean => this.#pausedHandlers.has(handler)
  /** The attempts that wait for the end of a pause, since it came between their turn and their start. */
  #held: JobAttempt<EachJob>[] = []

  constructor(options: EngineOptions<EachJob>) {
    super(options)
    this.#concurrency = options.concurrency
  }

  get isPaused(): boolean {
    return this.#isPaused
  }

  /** Obeys the pauses of the inbox: no attempt starts while all of it is paused, and attempts leave paused handlers out. */
  obey(pauses: readonly Pause[]): void {
    this.#pausedHandlers = new Set(pauses.map(({ handler }) => handler))
    this.#isPaused = this.#pausedHandlers.has(undefined)
    this.lanes.limit(this.#isPaused ? 0 : this.#concurrency)
    this.lanes.schedule()
    if (!this.#isPaused) for (const attempt of this.#held.splice(0)) this.run(attempt)
  }

  protected override run(attempt: JobAttempt<EachJob>): void {
    const { job } = attempt
    attempt.isPaused = this.#isHandlerPaused
    if (job.attempt === attempt && !job.hasEnded) job.state = this.#isPaused ? 'waiting' : 'running'
    if (this.#isPaused) this.#held.push(attempt)
    else super.run(attempt)
  }

  protected override settle(attempt: JobAttempt<EachJob>, result: AttemptResult): void {
    if (result.status !== 'retry' || !isRelease(result)) return super.settle(attempt, result)
    const { job, isPartial } = attempt
    super.settle(attempt, { ...result, delayMs: releaseForMs(job.accepted, isPartial, job.releases) })
  }

  override stop(releaseRetries?: () => void): void {
    super.stop(releaseRetries)
    this.#held = []
  }
}
