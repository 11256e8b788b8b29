import type { Logger } from '../../internal/logger.ts'
import { type Timer, unref } from '../../internal/timers.ts'
import type { SqliteCleanUp } from './clean-up.ts'
import type { SqliteDeadLetters } from './dead-letters.ts'
import type { SqliteDatabase, SqliteStatement } from './driver.ts'

/** Pauses between two runs in ms: usually, while there is much to clean up, and after a failure. */
const pauses = { usual: 500, busy: 20, failed: 5_000 }

export interface UpkeepOptions {
  readonly database: SqliteDatabase
  readonly cleanUp: SqliteCleanUp
  readonly deadLetters: SqliteDeadLetters
  readonly maxDeadLetters: number
  readonly logger: Logger
  /** Called when another process has changed the file. */
  onChanged(): void
}

/** The regular work on the file, every 500 ms: it notices changes of other processes, and cleans up. */
export class SqliteUpkeep {
  readonly #options: UpkeepOptions
  readonly #changes: SqliteStatement
  #version: number | undefined
  #timer: Timer | undefined

  constructor(options: UpkeepOptions) {
    this.#options = options
    // A number that changes whenever another connection has written.
    this.#changes = options.database.prepare('PRAGMA data_version')
    this.#version = this.#readVersion()
  }

  start(): void {
    this.#later(pauses.usual)
  }

  /** Makes the next run treat the file as changed. */
  suspect(): void {
    this.#version = undefined
  }

  stop(): void {
    clearTimeout(this.#timer)
  }

  #later(pauseMs: number): void {
    this.#timer = setTimeout(() => this.#later(this.#run()), pauseMs)
    unref(this.#timer)
  }

  /** Returns how long to pause, in ms. */
  #run(): number {
    const { cleanUp, deadLetters, maxDeadLetters, logger, onChanged } = this.#options
    try {
      const version = this.#readVersion()
      if (version !== this.#version) onChanged()
      this.#version = version
      const dropped = deadLetters.trim(maxDeadLetters)
      for (const { key } of dropped) logger.error({ key }, 'a dead letter was dropped to make room for a newer one')
      return cleanUp.slice() || dropped.length > 0 ? pauses.busy : pauses.usual
    } catch (error) {
      logger.warn({ err: error }, 'the inbox could not clean up its file')
      return pauses.failed
    }
  }

  #readVersion(): number {
    return (this.#changes.get() as { data_version: number }).data_version
  }
}
