import { describe, expect, test, vi } from 'vitest'
import { findPostgres } from '../../postgres/find-postgres.ts'
import { checkProgressIsStored } from '../progress.ts'
import { accept, postgresTests } from './fixture.ts'

vi.setConfig({ testTimeout: 20_000 })

describe.skipIf(!findPostgres())('postgresInbox', () => {
  const postgres = postgresTests()

  test('begins a handler only once the success of the one before it is in the database', async () => {
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

  /** Accepts an event that is charged with the ends of so many processes, and opens a receiver that handles it. */
  async function charged(crashes: number) {
    const front = postgres.receiver({ handles: false }).onAny(() => {})
    await front.ready()
    await accept(front, 'media')
    await postgres.query('UPDATE $schema.event SET crashes = $1', [crashes])
    const handled = vi.fn()
    const receiver = postgres.receiver().onAny(() => handled())
    await receiver.ready()
    return { receiver, handled, deadLetters: () => receiver.inbox.deadLetters.list() }
  }

  test('handles an event that nine processes ended with', async () => {
    const { handled, deadLetters } = await charged(9)
    await vi.waitFor(() => expect(handled).toHaveBeenCalledTimes(1))
    await vi.waitFor(async () => expect(await postgres.query('SELECT 1 FROM $schema.event')).toEqual([]))
    expect(await deadLetters()).toEqual([])
  })

  test('makes a dead letter of an event that ten processes ended with, without a further attempt', async () => {
    const { handled, deadLetters } = await charged(10)
    await vi.waitFor(async () => expect(await deadLetters()).toHaveLength(1))
    expect(await deadLetters()).toMatchObject([
      { attempts: 1, completed: [], failures: [{ handler: 'none', message: 'its handling was cut off 10 times' }] },
    ])
    expect(handled).not.toHaveBeenCalled()
  })
})
