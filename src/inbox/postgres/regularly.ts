import type { Logger } from '../../internal/logger.ts'
import { type Timer, unref } from '../../internal/timers.ts'
import { isUnreachable } from './database.ts'

/** The number of failures in a row after which one is logged, if Postgres seems to be unreachable. */
const tellingFailures = 3

/** Logs failures of regular work, unless Postgres seems to be unreachable. */
export class FailureLog {
  readonly #logger: Logger
  #failures = 0

  constructor(logger: Logger) {
    this.#logger = logger
  }

  failed(error: unknown): void {
    // A statement that always takes too long looks like an unreachable Postgres.
    if (!isUnreachable(error) || ++this.#failures === tellingFailures)
      this.#logger.error({ err: error }, 'the inbox could not do its regular work in Postgres')
  }

  succeeded(): void {
    this.#failures = 0
  }
}

/**
 * Runs work at regular intervals. It logs a failure, unless Postgres is unreachable, and repeats the work later. Work that is
 * needless before two runs in a row is skipped the second time, until `soon` or `now` asks for it.
 */
export class Regularly {
  readonly #work: () => Promise<number>
  readonly #afterFailureMs: number
  readonly #log: FailureLog
  readonly #isNeedless: () => boolean
  /** `true` if the last run was needless, and none was asked for since. */
  #rests = false
  /** The pause after the last run, in ms. */
  #pauseMs = 0
  #timer: Timer | undefined
  #running: Promise<void> | undefined
  #isRunning = false
  /** The time of the next run (`performance.now()`, ms). */
  #dueAt = Number.NEGATIVE_INFINITY
  /** Longest pause after the run under way (ms), as `soon` has asked for. */
  #soonMs = Number.POSITIVE_INFINITY
  #isStopped = false

  /**
   * @param work resolves with the pause before it is done again, in ms
   * @param isNeedless returns `true` if the work would find what it found the last time
   */
  constructor(work: () => Promise<number>, afterFailureMs: number, logger: Logger, isNeedless = () => false) {
    this.#work = work
    this.#isNeedless = isNeedless
    this.#afterFailureMs = afterFailureMs
    this.#log = new FailureLog(logger)
  }

  start(pauseMs: number): void {
    if (this.#isStopped) return
    this.#dueAt = performance.now() + pauseMs
    this.#timer = setTimeout(() => {
      this.#isRunning = true
      this.#soonMs = Number.POSITIVE_INFINITY
      this.#running = this.#run().then((nextMs) => {
        this.#isRunning = false
        this.start(Math.min(nextMs, this.#soonMs))
      })
    }, pauseMs)
    unref(this.#timer)
  }

  /** Brings the next run forward, if it would be later than in `ms`. */
  soon(ms: number): void {
    this.#rests = false
    if (this.#isRunning) this.#soonMs = Math.min(this.#soonMs, ms)
    if (this.#isRunning || performance.now() + ms >= this.#dueAt) return
    clearTimeout(this.#timer)
    this.start(ms)
  }

  /** Does the work immediately, unless it is already running. */
  now(): void {
    void Promise.resolve(this.#running).then(() => {
      this.#rests = false
      clearTimeout(this.#timer)
      this.start(0)
    })
  }

  async #run(): Promise<number> {
    const isNeedless = this.#isNeedless()
    if (this.#rests && isNeedless) return this.#pauseMs
    this.#rests = isNeedless
    try {
      this.#pauseMs = await this.#work()
      this.#log.succeeded()
      return this.#pauseMs
    } catch (error) {
      this.#rests = false
      this.#log.failed(error)
      return this.#afterFailureMs
    }
  }

  async stop(): Promise<void> {
    this.#isStopped = true
    clearTimeout(this.#timer)
    await this.#running
  }
}
