import { type PauseRow, type PauseStorage, toPause, toPauseRow } from '../operations/pauses.ts'
import type { Pause } from '../reading.ts'
import type { Database, Tables } from './database.ts'

/** The time between two reads of the pauses by a process that handles events, in ms. */
export const pausesMs = 1_500

// One JSON text, because the pool's parsers can be the user's.
const select = (table: string): string =>
  `SELECT json_build_object('handler', handler, 'since', round(extract(epoch FROM since) * 1000), 'by', paused_by)::text
     AS pause FROM ${table}`

const toPauses = (rows: readonly { readonly pause: string }[]): readonly Pause[] =>
  rows.map(({ pause }) => toPause(JSON.parse(pause) as PauseRow))

/** The table of the pauses. */
export const pauseStorage = (tables: Tables): PauseStorage => ({
  list: async () => toPauses(await tables.ask(select('$pause'))),
  async add(pause) {
    const { handler, since, by } = toPauseRow(pause)
    const added = await tables.ask(
      `INSERT INTO $pause (handler, since, paused_by) VALUES ($1, to_timestamp($2::float8 / 1000), $3)
       ON CONFLICT DO NOTHING RETURNING 1`,
      [handler, since, by],
    )
    return added.length > 0
  },
  async remove(handler = '') {
    return (await tables.ask('DELETE FROM $pause WHERE handler = $1 RETURNING 1', [handler])).length > 0
  },
})

/** Reads the pauses of an inbox that is not open yet. */
export const readPauses = async (database: Database): Promise<readonly Pause[]> =>
  toPauses(await database.query(select(`${database.schema}.pause`)))
