import type { Logger } from '../../internal/logger.ts'
import { type CleanUpLimits, logDropped, SqliteCleanUp } from '../sqlite-tables/clean-up.ts'
import type { SqliteTables } from '../sqlite-tables/storage.ts'
import type { ObjectCommits } from './storage.ts'

/** The pause between two clean-ups when there is little to clean up, in ms. */
const pauseMs = 10_000

/** Cleans up a step at a time while there is other work. An object without any does not grow, and is not woken for it. */
export class ObjectCleanUp {
  readonly #tables: SqliteTables
  readonly #commits: ObjectCommits
  readonly #cleanUp: SqliteCleanUp
  readonly #logger: Logger
  #nextAt = 0

  constructor(tables: SqliteTables, commits: ObjectCommits, limits: CleanUpLimits, logger: Logger) {
    this.#tables = tables
    this.#commits = commits
    this.#cleanUp = new SqliteCleanUp(tables, limits)
    this.#logger = logger
  }

  /** Called with each delivery and each end of an event. */
  turn(): void {
    if (Date.now() < this.#nextAt && !this.#tables.deadLetters.hasGrown) return
    try {
      const { dropped, goesOn } = this.#commits.now(() => this.#cleanUp.step())
      logDropped(dropped, this.#logger)
      this.#nextAt = goesOn ? 0 : Date.now() + pauseMs
    } catch (error) {
      this.#nextAt = Date.now() + pauseMs
      this.#logger.warn({ err: error }, 'the inbox could not clean up its storage')
    }
  }
}
