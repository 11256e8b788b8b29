import type { Logger } from '../../internal/logger.ts'
import { OutageLog } from '../../internal/outage-log.ts'
import { maxWaitMs, type Timer, unref } from '../../internal/timers.ts'
import type { Database } from './database.ts'

const failuresBeforeLog = 3

/** Logs failures of background work. Skips single transient ones: those show at the deliveries. */
export class FailureLog {
  readonly #logger: Logger
  readonly #database: Pick<Database, 'failure'>
  readonly #message: string
  readonly #outage = new OutageLog()
  #failures = 0

  constructor(
    logger: Logger,
    database: Pick<Database, 'failure'>,
    message = 'the inbox could not do its background work',
  ) {
    this.#logger = logger
    this.#database = database
    this.#message = message
  }

  failed(error: unknown): void {
    // A statement that always times out looks transient too.
    if (this.#database.failure(error) !== undefined && ++this.#failures < failuresBeforeLog) return
    this.#outage.failed(() => this.#logger.error({ err: error }, this.#message))
  }

  succeeded(): void {
    this.#failures = 0
    this.#outage.worked()
  }
}

/**
 * Runs a task after the delay its last run asked for. While `canSkip`, it runs once, then waits for `soon`.
 */
export class PeriodicTask {
  readonly #task: () => Promise<number>
  readonly #afterFailureMs: number
  readonly #log: FailureLog
  readonly #canSkip: () => boolean
  /** True if the last run was skippable and nothing has asked for another since. */
  #isIdle = false
  #delayMs = 0
  #timer: Timer | undefined
  #running: Promise<void> | undefined
  #isRunning = false
  #dueAt = Number.NEGATIVE_INFINITY
  /** Longest delay after the current run, from `soon` (ms). */
  #soonMs = Number.POSITIVE_INFINITY
  #isStopped = false

  /**
   * @param task resolves with the delay before its next run (ms)
   * @param canSkip true if a run would find nothing new
   */
  constructor(task: () => Promise<number>, afterFailureMs: number, log: FailureLog, canSkip = () => false) {
    this.#task = task
    this.#canSkip = canSkip
    this.#afterFailureMs = afterFailureMs
    this.#log = log
  }

  start(delayMs: number): void {
    if (this.#isStopped) return
    this.#dueAt = performance.now() + delayMs
    this.#timer = setTimeout(
      () => {
        this.#isRunning = true
        this.#soonMs = Number.POSITIVE_INFINITY
        this.#running = this.#run().then((nextMs) => {
          this.#isRunning = false
          this.start(Math.min(nextMs, this.#soonMs))
        })
      },
      Math.min(delayMs, maxWaitMs),
    )
    unref(this.#timer)
  }

  /** Moves the next run forward to `ms` from now, if it is later. */
  soon(ms: number): void {
    this.#isIdle = false
    if (this.#isRunning) this.#soonMs = Math.min(this.#soonMs, ms)
    if (this.#isRunning || performance.now() + ms >= this.#dueAt) return
    clearTimeout(this.#timer)
    this.start(ms)
  }

  async #run(): Promise<number> {
    const canSkip = this.#canSkip()
    if (this.#isIdle && canSkip) return this.#delayMs
    this.#isIdle = canSkip
    try {
      this.#delayMs = await this.#task()
      this.#log.succeeded()
      return this.#delayMs
    } catch (error) {
      this.#isIdle = false
      if (!this.#isStopped) this.#log.failed(error)
      return this.#afterFailureMs
    }
  }

  async stop(): Promise<void> {
    this.#isStopped = true
    clearTimeout(this.#timer)
    await this.#running
  }
}
