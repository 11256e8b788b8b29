import { keptOperations, type OperationStorage } from '../operations/operations.ts'
import type { Database } from './database.ts'

const insert = 'INSERT INTO $operation (operation, events) VALUES ($1, $2)'
const dropOldest = `DELETE FROM $operation WHERE id <= (SELECT id FROM $operation ORDER BY id DESC LIMIT 1 OFFSET ${keptOperations})`

export const operationTable = (database: Pick<Database, 'read' | 'change'>): OperationStorage => ({
  async add(operation, events) {
    await database.change([{ sql: insert, values: [operation, events] }, { sql: dropOldest }])
  },
  async list(limit, event) {
    const sql = 'SELECT operation FROM $operation WHERE events LIKE $1 ORDER BY id DESC LIMIT $2'
    const rows = await database.read<{ readonly operation: string }>(sql, [`%${event}%`, limit])
    return rows.map(({ operation }) => operation)
  },
})
