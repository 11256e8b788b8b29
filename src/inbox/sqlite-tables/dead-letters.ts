import type { Logger } from '../../internal/logger.ts'
import { dropOldest } from '../sql/dead-letters.ts'
import type { SyncTables } from '../sql/tables.ts'
import type { SqliteSql } from './sql.ts'

/** Adds dead letters of events, and keeps their number within the limit. */
export class SqliteDeadLetters {
  readonly #sql: SqliteSql
  readonly #hashKey: (key: string) => string
  #hasGrown = true

  constructor(sql: SqliteSql, hashKey: (key: string) => string) {
    this.#sql = sql
    this.#hashKey = hashKey
  }

  /**
   * Adds a dead letter, unless it exists, in the caller's transaction. `letter` is JSON, without completed handlers.
   */
  add(id: number, key: string, completed: readonly string[], letter: string): void {
    this.#hasGrown = true
    const text = `{"completed":${JSON.stringify(completed)},"letter":${letter}}`
    const sql =
      'INSERT INTO $dead_letter (hash, event_id, dead_letter) VALUES ($1, $2, $3) ON CONFLICT (hash) DO NOTHING'
    this.#sql.run({ sql, values: [this.#hashKey(key), id, text] })
  }

  get hasGrown(): boolean {
    return this.#hasGrown
  }

  /** Drops a batch of the oldest past `most`. Returns true if more may be left. */
  async trim(tables: SyncTables, most: number, logger: Logger): Promise<boolean> {
    if (!this.#hasGrown) return false
    this.#hasGrown = false
    const mayHaveMore = await dropOldest(tables, 'IS NOT NULL', most, logger).catch((error) => {
      this.#hasGrown = true
      throw error
    })
    this.#hasGrown ||= mayHaveMore
    return this.#hasGrown
  }
}
