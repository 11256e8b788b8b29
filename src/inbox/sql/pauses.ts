import type { PauseStorage } from '../operations/pauses.ts'
import type { Pause } from '../reading.ts'
import type { SqlTables } from './tables.ts'

const pauseMark = 'pause'

// An empty handler means the whole inbox.
const select = 'SELECT handler, since, paused_by FROM $pause'

interface PauseRow {
  readonly handler: string
  readonly since: number | string
  readonly paused_by: string | null
}

const toPause = ({ handler, since, paused_by: by }: PauseRow): Pause => ({
  ...(handler !== '' && { handler }),
  since: new Date(Number(since)),
  ...(by !== null && { by }),
})

export const pauseTable = (tables: SqlTables): PauseStorage => ({
  list: async () => (await tables.read<PauseRow>(select)).map(toPause),
  async add({ handler = '', since, by = null }) {
    const sql = 'INSERT INTO $pause (handler, since, paused_by) VALUES ($1, $2, $3) ON CONFLICT DO NOTHING'
    const [added = 0] = await tables.change([{ sql, values: [handler, since.getTime(), by] }], pauseMark)
    return added > 0
  },
  async remove(handler = '') {
    const sql = 'DELETE FROM $pause WHERE handler = $1'
    const [removed = 0] = await tables.change([{ sql, values: [handler] }], pauseMark)
    return removed > 0
  },
})
