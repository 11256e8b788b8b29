import { setTimeout as sleep } from 'node:timers/promises'
import { describe, expect, test, vi } from 'vitest'
import { findPostgres } from '../../postgres/find-postgres.ts'
import { accept, postgresTests } from './fixture.ts'

vi.setConfig({ testTimeout: 20_000 })

describe.skipIf(!findPostgres())('the keys of postgresInbox', () => {
  const postgres = postgresTests()
  const keys = async () =>
    Number((await postgres.query<{ count: string }>('SELECT count(*) FROM $schema.key'))[0]?.count)

  test('are forgotten when their time is up, except those of unfinished events and of dead letters', async () => {
    const receiver = postgres.receiver({ ttlMs: 300 }, { retry: { attempts: 1 } })
    receiver.onAny(({ mediaId }) => {
      if (mediaId === 'running') return new Promise(() => {})
      if (mediaId === 'dead') throw new Error('no')
    })
    await receiver.ready()
    for (const mediaId of ['handled', 'running', 'dead']) await accept(receiver, mediaId)
    await vi.waitFor(async () => expect((await receiver.inbox.stats()).deadLetters).toBe(1))
    await sleep(400)
    expect(await keys()).toBe(3)
    // A clean-up takes place when an inbox is opened, and every minute.
    const other = postgres.receiver({ ttlMs: 300, handles: false }).onAny(() => {})
    await other.ready()
    await vi.waitFor(async () => expect(await keys()).toBe(2))
    expect(await accept(other, 'handled')).toBe('accepted')
    expect(await accept(other, 'running')).toBe('duplicate')
    expect(await accept(other, 'dead')).toBe('duplicate')
    await other.inbox.deadLetters.discard((await other.inbox.deadLetters.list())[0]?.key as string)
    await other.close()
    await sleep(400)
    await postgres.receiver({ ttlMs: 300, handles: false }).ready()
    await vi.waitFor(async () => expect(await keys()).toBe(1))
  })

  test('are forgotten quickly, however many there are', async () => {
    const receiver = postgres.receiver({ handles: false }).onAny(() => {})
    await receiver.ready()
    await postgres.query(`
      INSERT INTO $schema.key (hash, id, accepted_at)
      SELECT gen_random_uuid(), nextval('$schema.event_id'), now() - interval '2 days' FROM generate_series(1, 30000)`)
    await postgres.receiver({ handles: false }).ready()
    await vi.waitFor(async () => expect(await keys()).toBe(0), 15_000)
  })
})
