import { prepareAll, type SqliteDatabase } from './connection.ts'
import * as sql from './statements.ts'

/** The next id, and the number of unfinished events. Good within a transaction. */
export class Counter {
  next = 0
  unfinished = 0
  readonly #sql

  constructor(database: SqliteDatabase) {
    this.#sql = prepareAll(database, sql.counter)
  }

  /** Runs a function in the caller's transaction, and stores what it counted. */
  keep<T>(run: () => T): T {
    const { next, unfinished } = this.#sql.read.get() as Pick<Counter, 'next' | 'unfinished'>
    Object.assign(this, { next, unfinished })
    const result = run()
    if (this.next !== next || this.unfinished !== unfinished) this.#sql.write.run(this.next, this.unfinished)
    return result
  }
}
