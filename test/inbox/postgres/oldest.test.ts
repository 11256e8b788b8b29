import pg from 'pg'
import { expect, test, vi } from 'vitest'
import { postgresContract } from '../../contract/postgres.suite.ts'

vi.mock('pg', () => import('pg-oldest'))

test('these tests run the oldest pg', async () => {
  const oldest = await import('pg-oldest')
  expect(pg.Pool).toBe(oldest.default.Pool)
})

postgresContract('postgresInbox with the oldest pg that it takes')
