import type { Signal } from '../sql/signal.ts'

import type { Step, SyncTables, Value } from '../sql/tables.ts'
import type { SqliteDatabase, SqliteStatement } from './database.ts'

interface Prepared {
  readonly statement: SqliteStatement
  /** The number of the value at each place of the statement, from 0 on. */
  readonly order: readonly number[]
}

/** The statements of the tables, each prepared once. */
export class SqliteSql {
  readonly #database: SqliteDatabase
  readonly #prepared = new Map<string, Prepared>()

  constructor(database: SqliteDatabase) {
    this.#database = database
  }

  read<Row>(sql: string, values: readonly Value[] = []): Row[] {
    const { statement, order } = this.#prepare(sql)
    return statement.all(...order.map((index) => values[index])) as Row[]
  }

  /** Changes rows, as part of a transaction. Returns their number. */
  run({ sql, values }: Step): number {
    const { statement, order } = this.#prepare(sql)
    return Number(statement.run(...order.map((index) => values[index])).changes)
  }

  #prepare(sql: string): Prepared {
    const known = this.#prepared.get(sql)
    if (known !== undefined) return known
    const order: number[] = []
    const text = sql.replaceAll(/\$(\w+)/g, (_, name: string) => {
      if (!/^\d/.test(name)) return `inbox_${name}`
      order.push(Number(name) - 1)
      return '?'
    })
    const prepared = { statement: this.#database.prepare(text), order }
    this.#prepared.set(sql, prepared)
    return prepared
  }
}

export interface TablesOptions {
  readonly hashKey: (key: string) => string
  /** @throws WebhookError once the tables cannot be read any more */
  readonly checkOpen: () => void
  /** Carries out a write in a transaction. */
  readonly commit: <T>(write: () => T) => Promise<T>
  /** Called with the signal of a change, once it is committed. Others see it in the file. */
  readonly changed?: (signal: Signal) => void
}

/** The tables of an inbox, over its statements. */
export const tablesOver = (sql: SqliteSql, { hashKey, checkOpen, commit, changed }: TablesOptions): SyncTables => ({
  hashKey,
  hex: (column) => `hex(${column})`,
  read(text, values) {
    checkOpen()
    return sql.read(text, values)
  },
  async change(steps, signal) {
    const rows = await commit(() => steps.map((step) => sql.run(step)))
    if (signal !== undefined) changed?.(signal)
    return rows
  },
})
