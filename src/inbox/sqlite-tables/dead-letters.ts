import type { Logger } from '../../internal/logger.ts'
import { dropOldest } from '../sql/dead-letters.ts'
import type { SyncTables } from '../sql/tables.ts'
import type { SqliteSql } from './sql.ts'

/** Adds events to the table of the dead letters, and keeps it within its limit. */
export class SqliteDeadLetters {
  readonly #sql: SqliteSql
  readonly #hashKey: (key: string) => string
  #hasGrown = true

  constructor(sql: SqliteSql, hashKey: (key: string) => string) {
    this.#sql = sql
    this.#hashKey = hashKey
  }

  /**
   * Adds an event, unless it is there, as part of a transaction.
   * @param letter JSON of the rest of it
   */
  add(id: number, key: string, completed: readonly string[], letter: string): void {
    this.#hasGrown = true
    const text = `{"completed":${JSON.stringify(completed)},"letter":${letter}}`
    const sql =
      'INSERT INTO $dead_letter (hash, event_id, dead_letter) VALUES ($1, $2, $3) ON CONFLICT (hash) DO NOTHING'
    this.#sql.run({ sql, values: [this.#hashKey(key), id, text] })
  }

  /** `true` if there may be too many. */
  get hasGrown(): boolean {
    return this.#hasGrown
  }

  /** Drops some of the events beyond the newest `most`. Returns `true` if there may be more. */
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
