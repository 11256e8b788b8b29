import type { Logger } from '../../internal/logger.ts'
import type { SyncTables } from '../sql/tables.ts'
import { SqliteCleanUp } from '../sqlite-tables/clean-up.ts'
import type { InboxLimits, SqliteTables } from '../sqlite-tables/storage.ts'
import type { ObjectCommits } from './storage.ts'

/** The pause between two clean-ups when there is little to clean up, in ms. */
const pauseMs = 10_000

/** Cleans up a step at a time while there is other work. An object without any does not grow, and is not woken for it. */
export class ObjectCleanUp {
  readonly #storage: SqliteTables
  readonly #tables: SyncTables
  readonly #commits: ObjectCommits
  readonly #cleanUp: SqliteCleanUp
  readonly #maxDeadLetters: number
  readonly #logger: Logger
  #nextAt = 0

  constructor(storage: SqliteTables, tables: SyncTables, commits: ObjectCommits, limits: InboxLimits, logger: Logger) {
    this.#storage = storage
    this.#tables = tables
    this.#commits = commits
    this.#cleanUp = new SqliteCleanUp(storage.database, limits.ttlMs)
    this.#maxDeadLetters = limits.maxDeadLetters
    this.#logger = logger
  }

  /** Called with each delivery and each end of an event. */
  turn(): void {
    const { deadLetters } = this.#storage
    if (deadLetters.hasGrown)
      deadLetters.trim(this.#tables, this.#maxDeadLetters, this.#logger).catch((error) => this.#failed(error))
    if (Date.now() < this.#nextAt) return
    try {
      this.#nextAt = this.#commits.now(() => this.#cleanUp.step()) ? 0 : Date.now() + pauseMs
    } catch (error) {
      this.#failed(error)
    }
  }

  #failed(error: unknown): void {
    this.#nextAt = Date.now() + pauseMs
    this.#logger.warn({ err: error }, 'the inbox could not clean up its storage')
  }
}
