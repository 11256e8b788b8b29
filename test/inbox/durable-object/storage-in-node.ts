import Libsql from 'libsql'
import type { ObjectStorage } from '../../../src/internal/storage/durable-objects.ts'

/** The storage of a Durable Object over a database in memory, for what needs no runtime of Workers. It has no alarms. */
export function storageInNode(): ObjectStorage {
  const database = new Libsql(':memory:')
  const isQuery = (text: string) => /^\s*(SELECT|PRAGMA)/.test(text)
  const hasSeveral = (text: string) => /;\s*\S/.test(text)
  return {
    sql: {
      exec(query, ...bindings) {
        if (isQuery(query))
          return { toArray: () => database.prepare(query).all(...bindings) as Record<string, unknown>[] }
        if (hasSeveral(query)) database.exec(query)
        else database.prepare(query).run(...bindings)
        return { toArray: () => [] }
      },
    },
    transactionSync(run) {
      database.exec('SAVEPOINT in_node')
      try {
        const result = run()
        database.exec('RELEASE in_node')
        return result
      } catch (error) {
        database.exec('ROLLBACK TO in_node; RELEASE in_node')
        throw error
      }
    },
    async setAlarm() {},
    async deleteAlarm() {},
  }
}
