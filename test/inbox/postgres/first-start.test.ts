import { readFile, writeFile } from 'node:fs/promises'
import { afterAll, beforeAll, describe, expect, onTestFinished, test, vi } from 'vitest'
import { postgresInbox } from '../../../src/inbox/postgres.ts'
import { createReceiver, unverified } from '../../../src/index.ts'
import { deliver, samplePayload } from '../../../src/testing/index.ts'
import { findPostgres } from '../../support/postgres/find-postgres.ts'
import { PostgresServer } from '../../support/postgres/postgres-server.ts'
import { recordingLogger } from '../../support/recording-logger.ts'

const password = 'pa-ss-w0rd'

describe.skipIf(findPostgres() === undefined)('a receiver whose Postgres cannot be used', () => {
  let server: PostgresServer
  let guarded: string

  beforeAll(async () => {
    server = await PostgresServer.start()
    await server.query(`CREATE ROLE guarded LOGIN PASSWORD 'another'`)
    const [{ hba_file: path }] = (await server.query('SHOW hba_file')) as [{ hba_file: string }]
    await writeFile(path, `host all guarded 127.0.0.1/32 scram-sha-256\n${await readFile(path, 'utf8')}`)
    await server.query('SELECT pg_reload_conf()')
    const { host } = new URL(server.url)
    guarded = `postgres://guarded:${password}@${host}/postgres`
  })
  afterAll(() => server.remove())

  async function start(connection: string) {
    const { logger, lines } = recordingLogger('warn')
    const receiver = createReceiver({
      verify: unverified(),
      inbox: postgresInbox({ connection, timeoutMs: 500 }),
      logger,
    })
    onTestFinished(async () => void (await receiver.close({ timeoutMs: 0 })))
    receiver.onAny(() => {})
    const { message, cause } = await receiver.ready().then(
      () => new Error('it is ready'),
      (error: Error) => error,
    )
    const answer = await deliver(receiver, samplePayload('encoding.finished'))
    await vi.waitUntil(() => lines.some((line) => line.message.startsWith('delivery rejected')))
    return {
      message,
      cause,
      answer,
      logged: lines.map((line) => `${line.message} ${line.details['err'] ?? ''}`).join('\n'),
    }
  }

  test.each([
    [
      'it is not running',
      () => `postgres://app:${password}@127.0.0.1:1/app`,
      /^Postgres at 127\.0\.0\.1:1 cannot be used: connect ECONNREFUSED 127\.0\.0\.1:1 \(is the server running/,
    ],
    [
      'its host is unknown',
      () => `postgres://app:${password}@no-such-host.invalid/app`,
      /^Postgres at no-such-host\.invalid:5432 cannot be used: getaddrinfo \S+ no-such-host\.invalid \(is the host name right\?\)/,
    ],
    [
      'there is no such database',
      () => server.url.replace(/postgres$/, 'missing'),
      /^Postgres at 127\.0\.0\.1:\d+ cannot be used: database "missing" does not exist \(is the name of the database right\?/,
    ],
    [
      'it rejects the password',
      () => guarded,
      /^Postgres at 127\.0\.0\.1:\d+ cannot be used: password authentication failed for user "guarded" \(are the user and/,
    ],
    [
      'the password needs to be encoded',
      () => 'postgres://app:pa-ss/w0rd@127.0.0.1:1/app',
      /^Postgres cannot be used: Invalid URL \(encode special characters in the password/,
    ],
  ])('says so if %s, in the error and the log, without the password and not to the sender', async (_, url, why) => {
    const { message, answer, logged } = await start(url())
    expect(message).toMatch(why)
    expect(logged).toContain(`the inbox cannot be opened yet; deliveries are answered 503 WebhookError: ${message}`)
    expect(logged).toContain(`delivery rejected: ${message}`)
    expect(`${message}${logged}`).not.toContain('pa-ss')
    expect([answer.status, JSON.parse(answer.body).message]).toEqual([503, 'the delivery cannot be accepted now'])
  })
})
