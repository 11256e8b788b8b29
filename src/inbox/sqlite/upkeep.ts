import type { Logger } from '../../internal/logger.ts'
import { type Timer, unref } from '../../internal/timers.ts'
import type { SqliteCleanUp } from './clean-up.ts'
import type { SqliteDeadLetters } from './dead-letters.ts'
import type { SqliteDatabase, SqliteStatement } from './driver.ts'

/** Pauses in ms: as a rule, while there is much to clean up, and after a failure. */
const pauses = { usual: 500, busy: 20, failed: 5_000 }

export interface UpkeepParts {
  readonly database: SqliteDatabase
  readonly cleanUp: SqliteCleanUp
  readonly letters: SqliteDeadLetters
  readonly maxDeadLetters: number
  readonly logger: () => Logger
  /** Told that another process has changed the file. */
  onChanged(): void
}

/** What is done to the file every now and then. */
export class SqliteUpkeep {
  readonly #parts: UpkeepParts
  readonly #changes: SqliteStatement
  #version: number | undefined
  #timer: Timer | undefined

  constructor(parts: UpkeepParts) {
    this.#parts = parts
    // A number that changes whenever another connection has written.
    this.#changes = parts.database.prepare('PRAGMA data_version')
    this.#version = this.#readVersion()
  }

  start(): void {
    this.#later(pauses.usual)
  }

  /** Lets the next look find the file changed. */
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

  /** Says how long to pause. */
  #run(): number {
    const { cleanUp, letters, maxDeadLetters, logger, onChanged } = this.#parts
    try {
      const version = this.#readVersion()
      if (version !== this.#version) onChanged()
      this.#version = version
      const dropped = letters.trim(maxDeadLetters)
      for (const { key } of dropped) logger().error({ key }, 'a dead letter was dropped to make room for a newer one')
      return cleanUp.slice() || dropped.length > 0 ? pauses.busy : pauses.usual
    } catch (error) {
      logger().warn({ err: error }, 'the inbox could not clean its file up')
      return pauses.failed
    }
  }

  #readVersion(): number {
    return (this.#changes.get() as { data_version: number }).data_version
  }
}
