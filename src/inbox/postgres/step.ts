import pg from 'pg'
import type { Step } from '../sql/database.ts'

/** Which connections a step runs on. A slow read or a wait for a lock must not hold up the others. */
export type Purpose = 'accepting' | 'handling' | 'renewing' | 'reading' | 'patient'

/** A statement with values. With a name, each connection prepares it once. */
export interface Query {
  readonly name?: string
  readonly text: string
  readonly values: readonly unknown[]
}

/** Rows of one statement, as texts and numbers. */
export type Rows = readonly Record<string, unknown>[]

/** A message to Postgres. Of several statements, all are simple queries, in which values are literals. */
export interface Message {
  readonly on: Purpose
  /** `$event` is a table of the inbox. */
  readonly parts: readonly (string | Query)[]
  /** Statement timeout (ms), if not the usual one. */
  readonly timeoutMs?: number
}

/** A step of the Postgres inbox: one message. */
export interface PostgresStep<out Result> extends Step<Result>, Message {
  /** True if a second copy has the result of the first one. */
  readonly isRepeatable?: boolean
  read(results: readonly Rows[]): Result
  /** Called after a timeout. */
  timedOut?(): void
}

/** @param read reads the rows of each statement */
export const step = <Result>(
  on: Purpose,
  parts: Message['parts'],
  read: (results: readonly Rows[]) => Result,
  timeoutMs?: number,
): PostgresStep<Result> => ({ on, parts, read, ...(timeoutMs !== undefined && { timeoutMs }) })

export const query = (text: string, ...values: readonly unknown[]): Query => ({ text, values })

export const namedQuery = (name: string, text: string, ...values: readonly unknown[]): Query => ({ name, text, values })

export const begin = 'BEGIN ISOLATION LEVEL READ COMMITTED'
export const commit = 'COMMIT'

export const transaction = (...parts: Message['parts']): Message['parts'] => [begin, ...parts, commit]

/** Writes a value as a literal without a type: an array as the text of one, since `ARRAY` of texts is none of numbers. */
export function literal(value: unknown): string {
  if (value === null || value === undefined) return 'NULL'
  const bytes = value instanceof Uint8Array && `\\x${Buffer.from(value).toString('hex')}`
  const text = Array.isArray(value) ? arrayLiteral(value) : `${bytes || value}`
  return /['\\]/.test(text) ? pg.Client.prototype.escapeLiteral(text) : `'${text}'`
}

/** Writes an array as Postgres reads it from a text. */
export const arrayLiteral = (values: readonly unknown[]): string => `{${values.map(element)}}`

const element = (value: unknown): string => {
  if (typeof value !== 'string') return `${value}`
  return `"${/["\\]/.test(value) ? value.replaceAll(/["\\]/g, '\\$&') : value}"`
}

/** Fills in values as literals. */
export const inline = ({ text, values }: Pick<Query, 'text' | 'values'>): string =>
  text.replaceAll(/"[^"]*"|\$(\d+)/g, (found, number) => (number === undefined ? found : literal(values[number - 1])))
