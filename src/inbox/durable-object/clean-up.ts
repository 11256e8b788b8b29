import type { Logger } from '../../internal/logger.ts'
import { SqliteCleanUp } from '../sqlite-tables/clean-up.ts'
import type { SqliteDatabase } from '../sqlite-tables/database.ts'
import type { SqliteDeadLetters } from '../sqlite-tables/dead-letters.ts'
import type { ObjectCommits } from './commits.ts'

/** The pause between two clean-ups when there is little to clean up, in ms. */
const pauseMs = 10_000

/**
 * Removes expired keys and dead letters beyond their limit, a slice at a time while there is other work. An object without
 * any does not grow, and is not woken for it.
 */
export class ObjectCleanUp {
  readonly #cleanUp: SqliteCleanUp
  readonly #deadLetters: SqliteDeadLetters
  readonly #commits: ObjectCommits
  readonly #maxDeadLetters: number
  readonly #logger: Logger
  #nextAt = 0

  constructor(
    database: SqliteDatabase,
    deadLetters: SqliteDeadLetters,
    commits: ObjectCommits,
    { ttlMs, maxDeadLetters }: { readonly ttlMs: number; readonly maxDeadLetters: number },
    logger: Logger,
  ) {
    this.#cleanUp = new SqliteCleanUp(database, ttlMs)
    this.#deadLetters = deadLetters
    this.#commits = commits
    this.#maxDeadLetters = maxDeadLetters
    this.#logger = logger
  }

  /** Called with each delivery and each end of an event. */
  turn(): void {
    if (Date.now() < this.#nextAt && !this.#deadLetters.hasGrown) return
    try {
      const goesOn = this.#commits.now(() => this.#trim() || this.#cleanUp.slice())
      this.#nextAt = goesOn ? 0 : Date.now() + pauseMs
    } catch (error) {
      this.#nextAt = Date.now() + pauseMs
      this.#logger.warn({ err: error }, 'the inbox could not clean up its storage')
    }
  }

  /** Drops dead letters, some at a time. Returns `true` if there were any. */
  #trim(): boolean {
    if (!this.#deadLetters.hasGrown) return false
    const dropped = this.#deadLetters.trim(this.#maxDeadLetters)
    for (const { key } of dropped) this.#logger.error({ key }, 'a dead letter was dropped to make room for a newer one')
    return dropped.length > 0
  }
}
