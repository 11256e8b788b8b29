import type { MaybePromise } from '../../internal/maybe-promise.ts'
import type { Signal } from './signal.ts'

export type Value = string | number | null | Uint8Array

export interface Step {
  readonly sql: string
  readonly values: readonly Value[]
}

/**
 * The tables of an inbox in any database. Everything off the delivery path is written once, in SQL that all databases
 * understand: `$pause` names a table, `$1` a value, `$now` the current time in the format of event columns. Other times
 * are ms since the epoch.
 */
export interface SqlTables {
  /** Returns a key as the tables store it. */
  hashKey(key: string): string
  /** SQL expression for the bytes of a column in hex. */
  hex(column: string): string
  /** SQL expression for a time of an event in ms since the epoch. */
  ms(column: string): string
  /** SQL expression for a value as JSON. A JSON column stays as it is. */
  json(value: string): string
  /** Query for the hashed keys in a JSON array: `hash`, and its index `place`. */
  hashesIn(array: string): string
  /** Returns rows. Some databases return numbers as text. */
  read<Row>(sql: string, values?: readonly Value[]): MaybePromise<Row[]>
  /**
   * Runs the steps in one transaction. Returns the number of changed rows per step.
   * @param signal tells the other processes what changed, where they don't see it in the storage
   */
  change(steps: readonly Step[], signal?: Signal): Promise<readonly number[]>
}

export interface SyncTables extends SqlTables {
  read<Row>(sql: string, values?: readonly Value[]): Row[]
}
