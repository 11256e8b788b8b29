import type { Dialect, Statement, Value } from '../sql/database.ts'
import type { SqliteDatabase, SqliteStatement } from './connection.ts'

/** Rows per event-loop turn: a few milliseconds, even with large payloads. */
const rowsPerTurn = 100

export const dialect: Dialect = {
  ms: (column) => column,
  hex: (column) => `hex(${column})`,
  json: (value) => value,
  lane: (media) => `(SELECT media FROM $lane WHERE hash = ${media})`,
  names: (column) => column,
  hashesIn: (array) => `SELECT value AS hash, key AS place FROM json_each(${array})`,
  isReady: 'ready_at IS NOT NULL',
  rowsPerTurn,
}

/**
 * Hashes a media id to 53 bits, which every driver reads as a number. A collision is harmless: both media items share one
 * lane. cyrb53, since Workers offer others only asynchronously.
 */
export function hashMedia(mediaId: string): string {
  let [low, high] = [0xdeadbeef, 0x41c6ce57]
  for (let i = 0; i < mediaId.length; i++) {
    const unit = mediaId.charCodeAt(i)
    low = Math.imul(low ^ unit, 2_654_435_761)
    high = Math.imul(high ^ unit, 1_597_334_677)
  }
  const mix = (a: number, b: number) =>
    Math.imul(a ^ (a >>> 16), 2_246_822_507) ^ Math.imul(b ^ (b >>> 13), 3_266_489_909)
  const mixedLow = mix(low, high)
  const mixedHigh = mix(high, mixedLow)
  return `${(mixedHigh & 0x1fffff) * 2 ** 32 + (mixedLow >>> 0)}`
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
