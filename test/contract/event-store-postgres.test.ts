import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { eventStoreContract } from '../../src/testing/contract/event-store.ts'
import { findPostgres } from '../support/postgres/find-postgres.ts'
import { PostgresServer } from '../support/postgres/postgres-server.ts'
import { postgresStores } from './postgres-stores.ts'

describe.skipIf(!findPostgres())('Postgres as an event store', () => {
  let server: PostgresServer
  beforeAll(async () => {
    server = await PostgresServer.start()
  })
  afterAll(() => server?.remove())
  const query = (text: string) => server.query(text)
  const subject = postgresStores(() => ({ query, connection: server.url, listen: true }))
  eventStoreContract(subject, { test, expect })
})
