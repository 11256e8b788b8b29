import { Pool, type PoolClient } from 'pg'
import { describe, expect, onTestFinished, test, vi } from 'vitest'
import { createReceiver, memoryInbox, unverified } from '../../../src/index.ts'
import { findPostgres } from '../../support/postgres/find-postgres.ts'
import { accept, postgresTests } from './postgres-tests.ts'

describe.skipIf(!findPostgres())('an event of the application', () => {
  const postgres = postgresTests()

  async function subject() {
    const receiver = postgres.receiver()
    const handled: string[] = []
    receiver.onAny(({ mediaId, source }) => void handled.push(`${mediaId} ${source}`))
    const overdue: string[] = []
    receiver.expect(
      'file.received',
      { then: 'encoding.finished', within: '4 s' },
      ({ mediaId }) => void overdue.push(mediaId),
    )
    await receiver.ready()
    const pool = new Pool({ connectionString: postgres.server.url })
    onTestFinished(() => pool.end())
    const client = await pool.connect()
    onTestFinished(() => client.release())
    const offer = (mediaId: string, from: object = client) =>
      receiver.accept({ type: 'encoding.finished', mediaId }, { client: from })
    return { receiver, handled, overdue, pool, client, offer }
  }

  test('is handled once its transaction commits, and is no open expectation meanwhile', async () => {
    const { receiver, handled, client, offer } = await subject()
    await client.query('BEGIN')
    expect(await offer('m1')).toBe('accepted')
    await client.query('COMMIT')
    await vi.waitUntil(() => handled.length === 1)
    expect(handled).toEqual(['m1 lookup'])
    expect(await receiver.inbox.expected?.()).toEqual([])
    expect((await receiver.inbox.stats()).expected).toBeUndefined()
  })

  test('holds up no delivery of its media item while its transaction is open', async () => {
    const { receiver, handled, client, offer } = await subject()
    await client.query('BEGIN')
    await offer('m1')
    await accept(receiver, 'm1')
    await vi.waitUntil(() => handled.length === 1)
    await client.query('ROLLBACK')
    await offer('m2')
    await vi.waitUntil(() => handled.length === 2)
    expect(handled).toEqual(['m1 delivery', 'm2 lookup'])
  })

  test('ends what is expected of its media item', async () => {
    const { receiver, overdue, handled, offer } = await subject()
    await receiver.accept({ type: 'file.received', mediaId: 'ended' })
    await receiver.accept({ type: 'file.received', mediaId: 'not ended' })
    await offer('ended')
    await vi.waitUntil(() => overdue.length === 1, 10_000)
    expect(overdue).toEqual(['not ended'])
    expect(handled).toHaveLength(3)
  })

  test.each([null, 'client', 5, {}, []])('is refused with %j instead of a client', async (client) => {
    const { offer, handled } = await subject()
    await expect(offer('m1', client as never)).rejects.toMatchObject({ code: 'invalid_option' })
    expect(handled).toEqual([])
  })

  test('is refused with a pool, whose queries are in no transaction, and by an inbox without a database', async () => {
    const { offer, pool } = await subject()
    await expect(offer('m1', pool)).rejects.toMatchObject({
      code: 'invalid_option',
      message: expect.stringContaining('not a pool'),
    })
    const inMemory = createReceiver({ verify: unverified(), inbox: memoryInbox() }).onAny(() => {})
    onTestFinished(async () => void (await inMemory.close()))
    const client = {} as PoolClient
    await expect(inMemory.accept({ type: 'encoding.finished', mediaId: 'm' }, { client })).rejects.toMatchObject({
      code: 'invalid_option',
    })
  })
})
