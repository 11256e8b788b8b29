import { describe, expect, test, vi } from 'vitest'
import { ownTime } from '../../support/own-time.ts'
import { findPostgres } from '../../support/postgres/find-postgres.ts'
import { checkProgressIsStored } from '../stored-progress.ts'
import { accept, postgresTests } from './postgres-tests.ts'

describe.skipIf(!findPostgres())('postgresInbox', () => {
  const postgres = postgresTests()

  test('begins a handler only once the success of the previous one is in the database', async () => {
    const receiver = postgres.receiver()
    await receiver.ready()
    const client = await postgres.pool.connect()
    const lock = `SELECT 1 FROM ${postgres.schema}.event FOR UPDATE`
    await checkProgressIsStored(receiver, {
      block: () => client.query(`BEGIN; ${lock}`),
      unblock: () => client.query('COMMIT'),
      async completed() {
        const [row] = await postgres.query<{ completed: string[] }>('SELECT completed FROM $schema.event')
        return row?.completed ?? []
      },
    })
    client.release()
  })

  /** Accepts an event that counts the ends of so many processes, and opens a receiver that handles it. */
  async function crashed(crashes: number, handled = vi.fn<() => unknown>(), attempt = vi.fn()) {
    const front = postgres.receiver({ handles: false }).onAny(() => {}, { name: 'handle' })
    await front.ready()
    await accept(front, 'media')
    await postgres.query('UPDATE $schema.event SET crashes = $1', [crashes])
    const receiver = postgres.receiver({}, { hooks: { attempt } }).onAny(() => handled(), { name: 'handle' })
    await receiver.ready()
    return { receiver, handled, attempt, deadLetters: () => receiver.inbox.deadLetters.list() }
  }

  test('handles an event that nine processes ended with', async () => {
    const { handled, deadLetters } = await crashed(9)
    await vi.waitFor(() => expect(handled).toHaveBeenCalledTimes(1))
    await postgres.allEnded()
    expect(await deadLetters()).toEqual([])
  })

  test('makes a dead letter of an event that ten processes ended with, without a further attempt', async () => {
    const { handled, attempt, deadLetters } = await crashed(10)
    await vi.waitFor(async () => expect(await deadLetters()).toHaveLength(1))
    expect(await deadLetters()).toMatchObject([
      {
        attempts: 1,
        completed: [],
        failures: [{ handler: 'none', message: 'the process crashed 10 times while handling it' }],
      },
    ])
    expect(handled).not.toHaveBeenCalled()
    expect(attempt.mock.calls).toMatchObject([[{ outcome: 'dead-lettered', mediaId: 'media', attempt: 1 }]])
  })

  test('counts the crashes of an event anew after an attempt that has ended', async () => {
    const handled = vi.fn<() => unknown>()
    handled.mockRejectedValueOnce(new Error('no')).mockReturnValueOnce(new Promise(() => {}))
    const { deadLetters } = await crashed(9, handled)
    await vi.waitFor(() => expect(handled).toHaveBeenCalledTimes(2))
    // This acts as a crash of the process.
    await postgres.query('UPDATE $schema.process SET expires_at = now()')
    const next = postgres.receiver().onAny(() => handled(), { name: 'handle' })
    await next.ready()
    await postgres.allEnded()
    expect(await deadLetters()).toEqual([])
    expect(handled).toHaveBeenCalledTimes(3)
  })

  test('handles what its processes held when they were killed, however much of it only waited, and suspects nothing of that', async () => {
    const front = postgres.receiver({ handles: false }, { eventKey: ({ mediaId, userId }) => `${mediaId} ${userId}` })
    front.onAny(() => {}, { name: 'handle' })
    await front.ready()
    const dead = '00000000-0000-0000-0000-000000000001'
    for (const mediaId of ['retried', 'read'])
      for (let media = 0; media < 40; media++)
        for (let user = 0; user < 4; user++) await accept(front, `${mediaId} ${media}`, `${user}`)
    // As after two kills: the first event of half of the lanes waits for a retry, and all are read and held.
    await postgres.query(`UPDATE $schema.event SET attempts = 1, due_at = now() + interval '1 h', delayed_at = now()
      WHERE head ->> 1 LIKE 'retried%' AND head ->> 2 LIKE '% 0'`)
    await postgres.query(`UPDATE $schema.lane SET owner = '${dead}', crashes = 1, ready_at = 'infinity'`)
    await postgres.query(`INSERT INTO $schema.process VALUES ('${dead}', now() - interval '1 s', 600, '[]')`)
    const handled = vi.fn()
    const receiver = postgres.receiver({ leaseMs: 900 }).onAny(({ mediaId }) => handled(mediaId), { name: 'handle' })
    await receiver.ready()
    const elapsed = ownTime()
    await vi.waitFor(() => expect(handled).toHaveBeenCalledTimes(280))
    expect(elapsed()).toBeLessThan(15_000)
    await vi.waitFor(async () => expect(await receiver.inbox.stats()).toMatchObject({ running: 0, retrying: 40 }))
    expect(await postgres.query('SELECT FROM $schema.event WHERE crashes > 0')).toEqual([])
  })
})
