import { describe, expect, test, vi } from 'vitest'
import { findPostgres } from '../../support/postgres/find-postgres.ts'
import { accept, postgresTests } from './postgres-tests.ts'

describe.skipIf(!findPostgres())('a database with a publication for all tables', () => {
  const postgres = postgresTests({ wal_level: 'logical' })

  test('takes the tables of an inbox, and every update and delete of them', async () => {
    await postgres.query('CREATE PUBLICATION everything FOR ALL TABLES')
    const receiver = postgres.receiver()
    const handled: string[] = []
    receiver.on('encoding.finished', (event) => void handled.push(event.mediaId))
    await receiver.ready()
    await accept(receiver, 'one')
    await vi.waitFor(() => expect(handled).toEqual(['one']))
    const tables = await postgres.query<{ name: string }>(
      `SELECT relname AS name FROM pg_class WHERE relkind = 'r' AND relnamespace = '$schema'::regnamespace`,
    )
    expect(tables.length).toBeGreaterThanOrEqual(9)
    for (const { name } of tables) {
      const columns = await postgres.query<{ column: string }>(
        `SELECT attname AS column FROM pg_attribute
         WHERE attrelid = '$schema.${name}'::regclass AND attnum > 0 AND attidentity = '' LIMIT 1`,
      )
      const [{ column } = { column: '' }] = columns
      await postgres.query(`UPDATE $schema.${name} SET ${column} = ${column} WHERE false`)
      await postgres.query(`DELETE FROM $schema.${name} WHERE false`)
    }
  })
})
