import type { InboxHost } from '../../src/inbox/inbox.ts'
import { checkRoute, type PostgresConnection } from '../../src/inbox/postgres/connection.ts'
import { PostgresDatabase } from '../../src/inbox/postgres/database.ts'
import { readLimits } from '../../src/inbox/sqlite/database.ts'
import { ownFile } from '../../src/inbox/sqlite/file.ts'
import { FileDatabase } from '../../src/inbox/sqlite/file-database.ts'
import { crashed, freshPath } from '../inbox/sqlite/sqlite-tests.ts'
import type { DatabaseSubject } from './suites/database-process.ts'

/** How long keys are remembered in the contract of databases (ms). */
const ttlMs = 50

/** Makes a subject in a file of its own. */
export async function sqliteDatabases(): Promise<DatabaseSubject> {
  let path = await freshPath()
  return {
    open: (host) => FileDatabase.over(host, ownFile(path), readLimits({ ttlMs })),
    async crash() {
      path = await crashed(path)
    },
  }
}

export interface SharedServer {
  readonly connection: PostgresConnection
  readonly listen: boolean
  query(text: string): Promise<readonly unknown[]>
}

let subjects = 0

/** Makes subjects in schemas of their own. */
export const postgresDatabases = (server: () => SharedServer) => async (): Promise<DatabaseSubject> => {
  const { connection, listen, query } = server()
  const schema = `database_${++subjects}`
  const options = { schema, concurrency: 16, leaseMs: 30_000, ttlMs, timeoutMs: 10_000, listen, handles: true }
  return {
    open: (host: InboxHost) => new PostgresDatabase(host, { ...checkRoute('test', { connection }), ...options }),
    async crash({ owner }) {
      await query(`UPDATE ${schema}.process SET expires_at = now() - interval '1 s' WHERE id = '${owner}'`)
    },
  }
}
