import net from 'node:net'
import pg from 'pg'
import { describe, expect, onTestFinished, test, vi } from 'vitest'
import { checkRoute } from '../../../src/inbox/postgres/connection.ts'

const url = 'postgres://app:secret@db.example/app'

describe('a connection', () => {
  test.each([
    url,
    new URL(url),
    { connectionString: url },
    { host: 'db.example', password: 'secret' },
    { stream: () => new net.Socket(), user: 'app' },
    '/var/run/postgresql app',
  ])('takes what names a server', (connection) => {
    vi.stubEnv('PGHOST', undefined)
    onTestFinished(() => void vi.unstubAllEnvs())
    expect(checkRoute('postgresInbox', { connection }).given).toBeUndefined()
  })

  test('takes a pool, and listens for its errors once', async () => {
    const pool = new pg.Pool({ connectionString: url })
    onTestFinished(() => pool.end())
    expect(checkRoute('postgresInbox', { connection: pool }).given).toBe(pool)
    expect(checkRoute('postgresInbox', { pool }).config).toMatchObject({ connectionString: url })
    expect(pool.listenerCount('error')).toBe(1)
  })

  test.each([
    ['', /is empty/],
    ['localhost', /begins with postgres:/],
    ['mysql://app:secret@db.example/app', /begins with postgres:/],
    ['postgres:///app', /names no host/],
    [{ url }, /no option url.*connectionString/],
    [{ hostname: 'db.example' }, /no option hostname/],
    [{ connectionString: undefined }, /environment variable/],
    [{ connectionString: '' }, /environment variable/],
    [{ host: undefined, database: 'app' }, /environment variable/],
    [{ database: 'app' }, /names no server/],
    [{}, /names no server/],
    [[url], /must be a URL/],
    [5432, /must be a URL/],
    [null, /must be a URL/],
    [() => {}, /must be a URL/],
  ])('%j is rejected with the fix, and without the password', (connection, problem) => {
    vi.stubEnv('PGHOST', undefined)
    onTestFinished(() => void vi.unstubAllEnvs())
    expect(() => checkRoute('postgresInbox', { connection })).toThrow(problem)
    expect(() => checkRoute('postgresInbox', { connection })).not.toThrow(/secret/)
  })
})
