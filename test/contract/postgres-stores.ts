import { PGlite } from '@electric-sql/pglite'
import type { PoolClient } from 'pg'
import { afterAll, beforeAll } from 'vitest'
import type { InboxHost } from '../../src/inbox/inbox.ts'
import { connectionTo } from '../../src/inbox/pglite/link.ts'
import { type PostgresConnection, routeOf } from '../../src/inbox/postgres/connection.ts'
import { PostgresStore } from '../../src/inbox/postgres/store.ts'
import type { EventStoreSubject } from '../../src/testing/contract/event-store.ts'

export interface StoresDatabase {
  readonly connection: PostgresConnection
  readonly listen: boolean
  query(text: string): Promise<readonly unknown[]>
}

let subjects = 0

/** Makes subjects in schemas of their own. */
export const postgresStores = (database: () => StoresDatabase) => async (): Promise<EventStoreSubject> => {
  const { connection, listen, query } = database()
  const schema = `store_${++subjects}`
  await query(`CREATE SCHEMA own_${schema}; CREATE TABLE own_${schema}.written (content text)`)
  const options = { schema, concurrency: 16, leaseMs: 30_000, ttlMs: 60_000, timeoutMs: 10_000, listen, handles: true }
  return {
    open: (host: InboxHost) => new PostgresStore(host, { ...routeOf('test', { connection }), ...options }),
    async crash() {
      await query(`UPDATE ${schema}.owner SET expires_at = now() - interval '1 s'`)
    },
    transactions: {
      write: (client: PoolClient, text: string) =>
        client.query(`INSERT INTO own_${schema}.written VALUES ($1)`, [text]),
      texts: async () =>
        (await query(`SELECT content FROM own_${schema}.written`)).map((row) => (row as { content: string }).content),
    },
  }
}

/** Subjects in one PGlite, which is there while the tests of this block run. */
export function pgliteStores(): () => Promise<EventStoreSubject> {
  let db: PGlite
  beforeAll(async () => {
    db = await PGlite.create()
  })
  afterAll(() => db.close())
  const query = async (text: string) => (await db.exec(text)).at(-1)?.rows ?? []
  return postgresStores(() => ({ query, connection: connectionTo(db), listen: false }))
}
