import type pg from 'pg'
import type { SqlTables, Value } from '../sql/tables.ts'
import { hashKey } from './keys.ts'
import { literalOf } from './literals.ts'
import { literal, quoted } from './schema.ts'
import { rowsOfEach } from './statements.ts'

export interface Tables extends SqlTables {
  /** Quoted schema name. */
  readonly schema: string
  /** Channel of notifications between processes: the schema name, unquoted. */
  readonly channel: string
  /** Runs a statement, and returns its rows as texts. Rejects with `unavailable`. */
  read<Row>(sql: string, values?: readonly (Value | readonly string[])[]): Promise<Row[]>
  /** Runs statements without parameters in one message. Returns the rows of each. Rejects with `unavailable`. */
  askAll(statements: string): Promise<Record<string, unknown>[][]>
}

/** The pool's parsers may be the user's. */
const texts: pg.CustomTypesConfig = { getTypeParser: () => (text: unknown) => text }

/** @param query runs a statement, or several in one message */
export function tablesOver(name: string, query: (query: pg.QueryConfig) => Promise<unknown>): Tables {
  const schema = quoted(name)
  const askAll = async (text: string) => rowsOfEach(await query({ text }))
  return {
    schema,
    channel: name,
    hashKey,
    hex: (column) => `encode(${column}, 'hex')`,
    ms: (column) => `round(extract(epoch FROM ${column}) * 1000)`,
    json: (value) => `to_json(${value})::text`,
    hashesIn: (array) =>
      `SELECT hash::uuid, place - 1 AS place FROM json_array_elements_text(${array}::json) WITH ORDINALITY asked (hash, place)`,
    async read<Row>(sql: string, values: readonly unknown[] = []) {
      const { rows } = (await query({
        text: withTables(sql, schema),
        values: [...values],
        types: texts,
      })) as pg.QueryResult
      return rows as Row[]
    },
    askAll,
    async change(steps, signal) {
      const statements = steps.map(({ sql, values }) => `${withValues(withTables(sql, schema), values)} RETURNING 1`)
      if (signal !== undefined) statements.push(`SELECT pg_notify(${literal(name)}, ${literal(signal)})`)
      const results = await askAll(`BEGIN ISOLATION LEVEL READ COMMITTED; ${statements.join('; ')}; COMMIT`)
      return results.slice(1, steps.length + 1).map((rows) => rows.length)
    },
  }
}

/** Fills in table names and the time, but not within quoted names: a schema's may have a `$`. */
const withTables = (sql: string, schema: string): string =>
  sql.replaceAll(/"[^"]*"|\$([a-z]\w*)/g, (found, name) => {
    if (name === undefined) return found
    return name === 'now' ? 'now()' : `${schema}.${name}`
  })

const withValues = (sql: string, values: readonly Value[]): string =>
  sql.replaceAll(/"[^"]*"|\$(\d+)/g, (found, number) => (number === undefined ? found : literalOf(values[number - 1])))
