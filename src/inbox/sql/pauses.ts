import type { PauseStorage } from '../operations/pauses.ts'
import type { Pause } from '../reading.ts'
import type { Database, Value } from './database.ts'

// An empty handler means the whole inbox.
const select = 'SELECT handler, since, paused_by FROM $pause'
const insert = 'INSERT INTO $pause (handler, since, paused_by) VALUES ($1, $2, $3) ON CONFLICT DO NOTHING'
const remove = 'DELETE FROM $pause WHERE handler = $1'

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

export function pauseTable(database: Pick<Database, 'read' | 'change' | 'notify'>): PauseStorage {
  const change = async (sql: string, values: readonly Value[]) => {
    const [changed = 0] = await database.change([{ sql, values }])
    database.notify?.('pause')
    return changed > 0
  }
  return {
    list: async () => (await database.read<PauseRow>(select)).map(toPause),
    add: ({ handler = '', since, by = null }) => change(insert, [handler, since.getTime(), by]),
    remove: (handler = '') => change(remove, [handler]),
  }
}
