import { type PauseRow, toPause, toPauseRow } from '../operations/pauses.ts'
import type { Pause } from '../reading.ts'
import type { SqliteDatabase } from './database.ts'
import { preparePauses } from './statements.ts'

/** The table of the pauses. Call each method that writes in a transaction. */
export class SqlitePauses {
  readonly #sql: ReturnType<typeof preparePauses>

  constructor(database: SqliteDatabase) {
    this.#sql = preparePauses(database)
  }

  list(): readonly Pause[] {
    return (this.#sql.read.all() as PauseRow[]).map(toPause)
  }

  add(pause: Pause): boolean {
    const { handler, since, by } = toPauseRow(pause)
    return Number(this.#sql.add.run(handler, since, by).changes) > 0
  }

  remove(handler = ''): boolean {
    return Number(this.#sql.remove.run(handler).changes) > 0
  }
}
