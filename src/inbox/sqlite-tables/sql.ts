import type { Signal } from '../sql/signal.ts'
import type { Step, SyncTables, Value } from '../sql/tables.ts'
import type { SqliteDatabase, SqliteStatement } from './database.ts'

interface Prepared {
  readonly statement: SqliteStatement
  /** Value number for each placeholder, from 1. 0 stands for the current time. */
  readonly order: readonly number[]
}

export class SqliteSql {
  readonly #database: SqliteDatabase
  readonly #prepared = new Map<string, Prepared>()

  constructor(database: SqliteDatabase) {
    this.#database = database
  }

  read<Row>(sql: string, values: readonly Value[] = []): Row[] {
    const { statement, order } = this.#prepare(sql)
    return statement.all(...inOrder(order, values)) as Row[]
  }

  /** Changes rows in the caller's transaction. Returns their number. */
  run({ sql, values }: Step): number {
    const { statement, order } = this.#prepare(sql)
    return Number(statement.run(...inOrder(order, values)).changes)
  }

  #prepare(sql: string): Prepared {
    const known = this.#prepared.get(sql)
    if (known !== undefined) return known
    const order: number[] = []
    const text = sql.replaceAll(/\$(\w+)/g, (_, name: string) => {
      if (name !== 'now' && !/^\d/.test(name)) return `inbox_${name}`
      order.push(name === 'now' ? 0 : Number(name))
      return '?'
    })
    const prepared = { statement: this.#database.prepare(text), order }
    this.#prepared.set(sql, prepared)
    return prepared
  }
}

const inOrder = (order: readonly number[], values: readonly Value[]) =>
  order.map((number) => (number === 0 ? Date.now() : values[number - 1]))

export interface TablesOptions {
  readonly hashKey: (key: string) => string
  readonly checkOpen: () => void
  readonly commit: <T>(write: () => T) => Promise<T>
  /** Called with the signal of a committed change. Other processes see the change in the file. */
  readonly changed?: (signal: Signal) => void
}

export const tablesOver = (sql: SqliteSql, { hashKey, checkOpen, commit, changed }: TablesOptions): SyncTables => ({
  hashKey,
  hex: (column) => `hex(${column})`,
  ms: (column) => column,
  json: (value) => value,
  hashesIn: (array) => `SELECT value AS hash, key AS place FROM json_each(${array})`,
  read(text, values) {
    checkOpen()
    return sql.read(text, values)
  },
  async change(steps, signal) {
    checkOpen()
    const rows = await commit(() => steps.map((step) => sql.run(step)))
    if (signal !== undefined) changed?.(signal)
    return rows
  },
})
