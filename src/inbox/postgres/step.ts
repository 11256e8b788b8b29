import { literalOf } from './literals.ts'
import type { Step } from '../sql/database.ts'

/** Which connections a step runs on. A slow read or a wait for a lock must not hold up the others. */
export type Purpose = 'accepting' | 'handling' | 'renewing' | 'reading' | 'patient'

/** A statement with parameters. A connection prepares it once, for good. */
export interface Prepared {
  readonly name: string
  readonly text: string
  readonly values: readonly unknown[]
}

/** Rows of one statement, as texts and numbers. */
export type Rows = readonly Record<string, unknown>[]

/** A step of the Postgres inbox: one message. */
export interface PostgresStep<out Result> extends Step<Result> {
  readonly on: Purpose
  /** Statements in order. Several make a message of simple queries, in which values are literals. */
  readonly parts: readonly (string | Prepared)[]
  /** Statement timeout (ms), if not the usual one. */
  readonly timeoutMs?: number
  /** @param results the rows of each statement */
  read(results: readonly Rows[]): Result
}

export const begin = 'BEGIN ISOLATION LEVEL READ COMMITTED'
export const commit = 'COMMIT'

/** Writes a value as a literal without a type: an array as the text of one, for EXECUTE takes no `ARRAY` of text for numbers. */
export const literal = (value: unknown): string => literalOf(Array.isArray(value) ? arrayLiteral(value) : value)

/** Writes an array as Postgres reads it from a text. */
export const arrayLiteral = (values: readonly unknown[]): string =>
  `{${values.map((value) => (typeof value === 'string' ? `"${value.replaceAll(/["\\]/g, '\\$&')}"` : `${value}`))}}`

/** Fills in values as literals. */
export const inline = ({ text, values }: Pick<Prepared, 'text' | 'values'>): string =>
  text.replaceAll(/"[^"]*"|\$(\d+)/g, (found, number) => (number === undefined ? found : literal(values[number - 1])))

/** Calls for a step of one transaction. */
export const transaction = (...parts: readonly (string | Prepared)[]): readonly (string | Prepared)[] => [
  begin,
  ...parts,
  commit,
]
