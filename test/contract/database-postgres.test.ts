import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { findPostgres } from '../support/postgres/find-postgres.ts'
import { PostgresServer } from '../support/postgres/postgres-server.ts'
import { postgresDatabases } from './databases.ts'
import { databaseContract } from './suites/database.ts'

// A role or database may have another default.
describe.skipIf(!findPostgres()).each(['read committed', 'repeatable read'])('Postgres, by default in %s', (level) => {
  let server: PostgresServer
  beforeAll(async () => {
    server = await PostgresServer.start({ settings: { default_transaction_isolation: level } })
  })
  afterAll(() => server?.remove())
  const query = (text: string) => server.query(text)
  databaseContract(
    postgresDatabases(() => ({ query, connection: server.url, listen: true })),
    { test, expect },
  )
})
