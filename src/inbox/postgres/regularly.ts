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

/** Runs work at regular intervals. It logs a failure, unless Postgres is unreachable, and repeats the work later. */
export class Regularly {
  readonly #work: () => Promise<number>
  readonly #afterFailureMs: number
  readonly #log: FailureLog
  #timer: Timer | undefined
  #running: Promise<void> | undefined
  #isStopped = false

  /** @param work resolves with the pause before it is done again, in ms */
  constructor(work: () => Promise<number>, afterFailureMs: number, logger: Logger) {
    this.#work = work
    this.#afterFailureMs = afterFailureMs
    this.#log = new FailureLog(logger)
  }

  start(pauseMs: number): void {
    if (this.#isStopped) return
    this.#timer = setTimeout(() => {
      this.#running = this.#run().then((nextMs) => this.start(nextMs))
    }, pauseMs)
    unref(this.#timer)
  }

  /** Does the work immediately, unless it is already running. */
  now(): void {
    void Promise.resolve(this.#running).then(() => {
      clearTimeout(this.#timer)
      this.start(0)
    })
  }

  async #run(): Promise<number> {
    try {
      const pauseMs = await this.#work()
      this.#log.succeeded()
      return pauseMs
    } catch (error) {
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
