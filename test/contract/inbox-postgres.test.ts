import type { PoolClient } from 'pg'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { type PostgresInboxOptions, postgresInbox } from '../../src/inbox/postgres.ts'
import { inboxContract } from '../../src/testing/contract/inbox.ts'
import { findPostgres } from '../support/postgres/find-postgres.ts'
import { PostgresServer } from '../support/postgres/postgres-server.ts'

const features = { transactions: true, reads: true, expects: true, pauses: true }

describe.skipIf(!findPostgres())('postgresInbox', () => {
  let server: PostgresServer
  let subjects = 0
  beforeAll(async () => {
    server = await PostgresServer.start()
    await server.query('CREATE TABLE written (subject int, content text)')
  })
  afterAll(() => server?.remove())

  const subject = (options: Partial<PostgresInboxOptions> = {}) => {
    const number = ++subjects
    const write = (client: PoolClient, text: string) =>
      client.query('INSERT INTO public.written VALUES ($1, $2)', [number, text])
    const texts = async () =>
      (await server.query('SELECT content FROM written WHERE subject = $1', [number])).map(({ content }) => content)
    return {
      inbox: postgresInbox({ connection: server.url, schema: `subject ${number}`, ...options }),
      transactions: { write, texts },
    }
  }
  inboxContract(() => subject(), { test, expect }, features)

  describe('that looks for events instead of listening', () => {
    inboxContract(() => subject({ listen: false }), { test, expect }, features)
  })
})
