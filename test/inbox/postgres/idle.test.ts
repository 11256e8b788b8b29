import { setTimeout as sleep } from 'node:timers/promises'
import pg from 'pg'
import { describe, expect, onTestFinished, test, vi } from 'vitest'
import { Connections } from '../../../src/inbox/postgres/connections.ts'
import { Notifications } from '../../../src/inbox/postgres/notifications.ts'
import { type PostgresInboxOptions, postgresInbox } from '../../../src/inbox/postgres.ts'
import { eventOf, openInbox } from '../../support/inbox.ts'
import { findPostgres } from '../../support/postgres/find-postgres.ts'
import { accept, postgresTests } from './postgres-tests.ts'

/** So long that full jitter does not make the retry due during the test (ms). */
const day = 86_400_000

describe.skipIf(!findPostgres())('an idle inbox', { timeout: 180_000 }, () => {
  const postgres = postgresTests()

  async function open(options: Partial<PostgresInboxOptions> = {}) {
    const { pool, schema } = postgres
    const opened = openInbox(postgresInbox({ pool, schema, ...options }))
    onTestFinished(async () => {
      opened.calls.finishAll()
      await opened.inbox.close({ timeoutMs: 1_000 })
    })
    await opened.inbox.ready?.()
    return opened
  }

  /** Handles an event, and waits until the inbox knows that nothing waits: it looks again after each notification. */
  async function openQuiet() {
    const opened = await open()
    await opened.inbox.accept(eventOf('first'))
    const first = await opened.calls.next()
    first.finish()
    for (let look = 0; look < 5; look++) {
      await sleep(1_200)
      await postgres.query('SELECT pg_notify($1, $2)', [postgres.schema, 'any'])
    }
    await sleep(2_500)
    const nextKey = async () => (await opened.calls.next()).event.key
    return { ...opened, nextKey }
  }

  /** Opens an inbox that accepts events, and does not notify the others: its process may end before. */
  async function openUnheard() {
    const announce = vi.spyOn(Notifications.prototype, 'notify').mockReturnValue()
    onTestFinished(() => announce.mockRestore())
    return open({ handles: false })
  }

  /** Collects the texts of the messages to Postgres. */
  async function sentIn(ms: number): Promise<readonly string[]> {
    const query = vi.spyOn(pg.Client.prototype, 'query')
    await sleep(ms)
    const sent = query.mock.calls.map(([given]: unknown[]) => (given as { text?: string }).text ?? `${given}`)
    query.mockRestore()
    return sent
  }

  test('sends Postgres at most 30 messages a minute while an event waits for its retry', async () => {
    const receiver = postgres.receiver({}, { retry: { baseMs: day, maxMs: day } })
    const handler = vi.fn(() => {
      throw new Error('failed')
    })
    receiver.on('encoding.finished', handler)
    await receiver.ready()
    await accept(receiver, 'one')
    await vi.waitFor(() => expect(handler).toHaveBeenCalled())
    await sleep(3_000)
    expect((await sentIn(30_000)).length).toBeLessThanOrEqual(15)
  })

  test('only renews its lease, looks around and checks its connection once nothing waits', async () => {
    await openQuiet()
    // Each regular step has looked once since.
    await sleep(65_000)
    const sent = await sentIn(65_000)
    const renewals = sent.filter((text) => /SET expires_at|EXECUTE renew/.test(text))
    const looks = sent.filter((text) => text.includes('AS owned'))
    const checks = sent.filter((text) => /^SELECT max\(id\)[^;]*$/.test(text))
    expect(renewals.length).toBeGreaterThanOrEqual(6)
    expect(checks.length).toBeGreaterThanOrEqual(4)
    const known = [...renewals, ...looks, ...checks]
    expect(sent.filter((text) => !known.includes(text))).toEqual([])
    expect(sent.length).toBeLessThanOrEqual(18)
  })

  test('handles an event of a process that ended before it told the others', async () => {
    const { nextKey } = await openQuiet()
    const { inbox } = await openUnheard()
    await inbox.accept(eventOf('one'))
    expect(await nextKey()).toBe('one')
  })

  test('handles an event that is committed long after it was given its id', async () => {
    const { nextKey, calls } = await openQuiet()
    const client = await postgres.pool.connect()
    onTestFinished(() => client.release(true))
    const { schema } = postgres
    await client.query('BEGIN; SELECT pg_current_xact_id()')
    await client.query(
      `WITH stored AS (
         INSERT INTO ${schema}.event (hash, media, received_at, event, head, owed)
         VALUES (gen_random_uuid(), 1, now(), $1, '["encoding.finished","m","one"]', '[]') RETURNING media
       ) INSERT INTO ${schema}.lane (media, ready_at) SELECT media, now() FROM stored`,
      [eventOf('one').event],
    )
    // The next check of the connection finds the id, and not the event.
    await sleep(35_000)
    expect(calls.hasStarted).toBe(false)
    await client.query('COMMIT')
    expect(await nextKey()).toBe('one')
  })

  test('hands over an expectation of a process that ended before it told the others', async () => {
    const { nextKey } = await openQuiet()
    const { inbox, changes } = await openUnheard()
    const dueAt = new Date(Date.now() + 500)
    const begins = [{ rule: 'rule', dueAt, overdue: { ...eventOf('overdue'), receivedAt: dueAt } }]
    changes.set('one', { at: new Date(0), begins, ends: [] })
    await inbox.accept(eventOf('one'))
    expect(await nextKey()).toBe('one')
    expect(await nextKey()).toBe('overdue')
  })

  test('obeys a pause of another process', async () => {
    const { inbox, calls, nextKey } = await openQuiet()
    const other = await open({ handles: false })
    await other.inbox.pauses?.pause()
    await sleep(1_000)
    await inbox.accept(eventOf('one'))
    await sleep(2_000)
    expect(calls.hasStarted).toBe(false)
    await other.inbox.pauses?.resume()
    expect(await nextKey()).toBe('one')
  })

  test('looks for events while it cannot listen', async () => {
    const { nextKey } = await openQuiet()
    const { inbox } = await openUnheard()
    const connect = vi.spyOn(Connections.prototype, 'connect').mockRejectedValue(new Error('too many connections'))
    onTestFinished(() => connect.mockRestore())
    await postgres.query(
      `SELECT pg_terminate_backend(pid) FROM pg_stat_activity
       WHERE pid <> pg_backend_pid() AND query ~ '^(LISTEN|SELECT max)'`,
    )
    await vi.waitFor(() => expect(connect).toHaveBeenCalled(), 10_000)
    await inbox.accept(eventOf('one'))
    expect(await nextKey()).toBe('one')
  })
})
