import type { Dialect, Statement, Value } from '../sql/database.ts'
import type { SqliteDatabase, SqliteStatement } from './connection.ts'

/** Rows per event-loop turn: a few milliseconds, even with large payloads. */
const rowsPerTurn = 100

export const dialect: Dialect = {
  ms: (column) => column,
  hex: (column) => `hex(${column})`,
  json: (value) => value,
  names: (column) => column,
  hashesIn: (array) => `SELECT value AS hash, key AS place FROM json_each(${array})`,
  isReady: 'ready_at IS NOT NULL',
  rowsPerTurn,
}

interface Prepared {
  readonly statement: SqliteStatement
  /** Value number for each placeholder, from 1. 0 stands for the current time. */
  readonly order: readonly number[]
}

/** Runs the statements that all databases share. */
export class SharedText {
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
  change({ sql, values = [] }: Statement): number {
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
