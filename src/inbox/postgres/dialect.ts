import type { Dialect } from '../sql/database.ts'
import { literal } from './step.ts'

/** Most rows that a count looks at: counting 800,000 waiting events exceeded the statement timeout. */
const maxCounted = 100_000

export const dialect: Dialect = {
  ms: (column) => `round(extract(epoch FROM ${column}) * 1000)`,
  hex: (column) => `encode(${column}, 'hex')`,
  json: (value) => `to_json(${value})::text`,
  lane: (media) => media,
  names: (column) => `'[' || coalesce('"' || nullif(array_to_string(${column}, '","'), '') || '"', '') || ']'`,
  hashesIn: (array) =>
    `SELECT hash::uuid, place - 1 AS place FROM json_array_elements_text(${array}::json) WITH ORDINALITY asked (hash, place)`,
  isReady: "ready_at < 'infinity'",
  maxCounted,
}

/** Fills in the names of tables, of the sequence of events' ids and the time, but not within quoted names: a schema's may have a `$`. */
export const withTables = (sql: string, schema: string): string =>
  sql.replaceAll(/"[^"]*"|\$([a-z]\w*)/g, (found, name) => {
    if (name === undefined) return found
    if (name === 'event_ids') return literal(`${schema}.event_id_seq`)
    return name === 'now' ? 'now()' : `${schema}.${name}`
  })
