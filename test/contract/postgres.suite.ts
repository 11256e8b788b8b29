import { Client, type PoolClient } from 'pg'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { type PostgresInboxOptions, postgresInbox } from '../../src/inbox/postgres.ts'
import { findPostgres } from '../support/postgres/find-postgres.ts'
import { PostgresServer } from '../support/postgres/postgres-server.ts'
import { everyFeature } from './every-feature.ts'
import { inboxContract } from './suites/inbox.ts'

/**
 * Runs the contract over `postgresInbox` with some options.
 * @param schema the beginning of the schemas' names
 */
export function postgresContract(
  title: string,
  options: Partial<PostgresInboxOptions> = {},
  settings: Readonly<Record<string, string>> = {},
  schema = 'subject',
): void {
  describe.skipIf(!findPostgres())(title, () => {
    let server: PostgresServer
    let subjects = 0
    beforeAll(async () => {
      server = await PostgresServer.start({ settings })
      await server.query('CREATE TABLE written (subject int, content text)')
    })
    afterAll(() => server?.remove())

    const subject = () => {
      const number = ++subjects
      const write = (client: PoolClient, text: string) =>
        client.query('INSERT INTO public.written VALUES ($1, $2)', [number, text])
      const texts = async () =>
        (await server.query('SELECT content FROM written WHERE subject = $1', [number])).map(({ content }) => content)
      const own = async (end: string, run: (client: object) => unknown) => {
        const client = new Client(server.url)
        await client.connect()
        await client.query('BEGIN')
        await run(client)
        await client.query(end)
        await client.end()
      }
      return {
        inbox: postgresInbox({ connection: server.url, schema: `${schema} ${number}`, ...options }),
        transactions: { write, texts, own, run: (client: PoolClient, sql: string) => client.query(sql) },
      }
    }
    inboxContract(subject, { test, expect }, everyFeature)
  })
}
