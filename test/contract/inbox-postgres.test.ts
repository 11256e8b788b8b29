import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest'
import { postgresInbox } from '../../src/inbox/postgres.ts'
import { inboxContract } from '../../src/testing/contract/inbox.ts'
import { findPostgres } from '../postgres/find-postgres.ts'
import { PostgresServer } from '../postgres/postgres-server.ts'

vi.setConfig({ hookTimeout: 30_000 })

describe.skipIf(!findPostgres())('postgresInbox', () => {
  let server: PostgresServer
  let subjects = 0
  beforeAll(async () => {
    server = await PostgresServer.start()
  })
  afterAll(() => server?.remove())

  const subject = () => ({ inbox: postgresInbox({ connection: server.url, schema: `subject ${++subjects}` }) })
  inboxContract(subject, { test, expect })

  describe('that looks for events instead of listening', () => {
    const polling = () => ({
      inbox: postgresInbox({ connection: server.url, schema: `subject ${++subjects}`, listen: false }),
    })
    inboxContract(polling, { test, expect })
  })
})
