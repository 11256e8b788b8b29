import type { MaybePromise } from '../../internal/maybe-promise.ts'
import type { Signal } from './signal.ts'

/** A value of a statement. */
export type Value = string | number | null | Uint8Array

/** A statement that changes rows. */
export interface Step {
  readonly sql: string
  readonly values: readonly Value[]
}

/**
 * The tables of an inbox, whatever the database. What is not on the path of a delivery is written once, over these two methods,
 * in SQL that every database understands: `$pause` names a table, `$1` a value, and `$now` the time as the columns of events have
 * it. Other times are ms since the epoch.
 */
export interface SqlTables {
  /** Makes the form in which the tables store a key. */
  hashKey(key: string): string
  /** Returns an expression for the bytes of a column, as hexadecimal digits. */
  hex(column: string): string
  /** Returns an expression for a time of an event as ms since the epoch. */
  ms(column: string): string
  /** Returns an expression for a value as JSON. A column with JSON stays as it is. */
  json(value: string): string
  /** Returns a query for the hashed keys in a JSON array, as `hash`, and the place of each in it, from 0 on. */
  hashesIn(array: string): string
  /** Returns rows. Some databases return numbers as texts. */
  read<Row>(sql: string, values?: readonly Value[]): MaybePromise<Row[]>
  /**
   * Carries out steps in one transaction, and returns the number of rows that each has changed.
   * @param signal tells the processes of the inbox what has changed, if they do not see it in the storage
   */
  change(steps: readonly Step[], signal?: Signal): Promise<readonly number[]>
}

/** The tables of a database that answers at once. */
export interface SyncTables extends SqlTables {
  read<Row>(sql: string, values?: readonly Value[]): Row[]
}
