import type { SqliteDatabase, SqliteStatement } from '../../src/inbox/sqlite/connection.ts'
import { openDatabase } from '../../src/inbox/sqlite/driver.ts'

/**
 * The faults of a commit or a read. `busy`: another connection has the lock. `failed`: nothing is written.
 * `answer-lost`: it is committed, and the caller gets an error. The process ends `killed-before` or `killed-after` it.
 */
export type SqliteFault = 'busy' | 'failed' | 'answer-lost' | 'killed-before' | 'killed-after'

export interface UnreliableOptions {
  /** Draws the fault of a transaction; `undefined` for none. */
  readonly fault: () => SqliteFault | undefined
  /** Ends the process that has the file open. */
  readonly kill: () => void
}

/** A connection to a real file, on a disk that fails and in a process that can end in the middle. */
export class UnreliableDatabase implements SqliteDatabase {
  readonly #database: SqliteDatabase
  readonly #options: UnreliableOptions
  #fault: SqliteFault | undefined

  constructor(path: string, options: UnreliableOptions) {
    this.#database = openDatabase(path)
    this.#options = options
  }

  exec(sql: string): unknown {
    if (sql.startsWith('BEGIN')) this.#begin()
    return sql === 'COMMIT' ? this.#commit() : this.#database.exec(sql)
  }

  #begin(): void {
    this.#fault = this.#options.fault()
    if (this.#fault === 'busy') throw Object.assign(new Error('database is locked'), { code: 'SQLITE_BUSY' })
  }

  #commit(): void {
    const fault = this.#fault
    this.#fault = undefined
    if (fault === 'failed') throw ioError()
    if (fault === 'killed-before') this.#options.kill()
    else this.#database.exec('COMMIT')
    if (fault === 'killed-after') this.#options.kill()
    if (fault !== undefined) throw ioError()
  }

  prepare(sql: string): SqliteStatement {
    return this.#database.prepare(sql)
  }

  /** Releases the file as the end of a process does. Writes that are not committed are lost. */
  cutOff(): void {
    for (const sql of ['ROLLBACK', 'DETACH inbox_lock']) {
      try {
        this.#database.exec(sql)
      } catch {
        // There was no transaction, or no lock yet.
      }
    }
    this.#database.close()
  }

  close(): unknown {
    return this.#database.close()
  }
}

const ioError = () => Object.assign(new Error('disk I/O error'), { code: 'SQLITE_IOERR' })
