import { setTimeout as sleep } from 'node:timers/promises'
import { describe, expect, test, vi } from 'vitest'
import { CleanUp } from '../../../src/inbox/postgres/clean-up.ts'
import { findPostgres } from '../../support/postgres/find-postgres.ts'
import { accept, postgresTests } from './postgres-tests.ts'

describe.skipIf(!findPostgres())('the keys of postgresInbox', () => {
  const postgres = postgresTests()
  const keys = async () =>
    Number((await postgres.query<{ count: string }>('SELECT count(*) FROM $schema.key'))[0]?.count)

  test('are forgotten when their time is up, except those of unfinished events and of dead letters', async () => {
    const receiver = postgres.receiver({ ttlMs: 60_000 }, { retry: { attempts: 1 } })
    receiver.onAny(({ mediaId }) => {
      if (mediaId === 'running') return new Promise(() => {})
      if (mediaId === 'dead') throw new Error('no')
    })
    await receiver.ready()
    for (const mediaId of ['handled', 'running', 'dead']) await accept(receiver, mediaId)
    await vi.waitFor(async () => expect((await receiver.inbox.stats()).deadLetters).toBe(1))
    await sleep(400)
    expect(await keys()).toBe(3)
    // A clean-up takes place soon after an inbox is opened, and every minute.
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

  test('stay with the outcome of an event that was replayed after their time', async () => {
    let fails = true
    const receiver = postgres.receiver({}, { retry: { attempts: 1 } }).onAny(() => {
      if (fails) throw new Error('no')
    })
    await receiver.ready()
    await accept(receiver, 'media')
    await vi.waitFor(async () => expect((await receiver.inbox.stats()).deadLetters).toBe(1))
    await postgres.query("UPDATE $schema.key SET accepted_at = now() - interval '2 days'")
    fails = false
    await receiver.inbox.deadLetters.replayAll?.()
    const records = () => postgres.query('SELECT 1 FROM $schema.handled')
    await vi.waitFor(async () => expect(await records()).toHaveLength(1))
    const cleanUp = new CleanUp(postgres.database(), 86_400_000)
    await cleanUp.step()
    expect([await keys(), await records()]).toEqual([1, [expect.anything()]])
    await postgres.query(`UPDATE $schema.handled SET record = '["encoding.finished","media","key",0,0,1,[]]'`)
    await cleanUp.step()
    await cleanUp.step()
    expect([await keys(), await records()]).toEqual([0, []])
  })

  test('are forgotten quickly, however many there are', async () => {
    const receiver = postgres.receiver({ handles: false }).onAny(() => {})
    await receiver.ready()
    await postgres.query(`
      INSERT INTO $schema.key (hash, id, accepted_at)
      SELECT gen_random_uuid(), nextval('$schema.event_id'), now() - interval '2 days' FROM generate_series(1, 30000)`)
    await postgres.receiver({ handles: false }).ready()
    await vi.waitFor(async () => expect(await keys()).toBe(0))
  })

  test('are forgotten behind older ones that stay, each of which is examined once', async () => {
    await postgres.receiver({ handles: false }).ready()
    // A sequence counts the dead letters that are found.
    await postgres.query(`
      CREATE SEQUENCE $schema.found;
      ALTER TABLE $schema.dead_letter RENAME TO counted;
      CREATE VIEW $schema.dead_letter AS SELECT * FROM $schema.counted WHERE nextval('$schema.found') > 0`)
    // Every other one of the older keys is that of a dead letter, the others are those of events that wait.
    await postgres.query(`
      WITH old AS (
        INSERT INTO $schema.key (hash, id, accepted_at)
        SELECT gen_random_uuid(), nextval('$schema.event_id'), now() - interval '3 days' + n * interval '1 ms'
        FROM generate_series(1, 12000) AS n RETURNING id, hash
      ), dead AS (
        INSERT INTO $schema.dead_letter (hash, event_id, media, dead_letter)
        SELECT hash, id, 1, '{}' FROM old WHERE id % 2 = 0
      )
      INSERT INTO $schema.event (id, media, event, received_at, owed) SELECT id, 1, '{}', now(), '[]' FROM old WHERE id % 2 = 1`)
    await postgres.query(`
      INSERT INTO $schema.key (hash, id, accepted_at)
      SELECT gen_random_uuid(), nextval('$schema.event_id'), now() - interval '2 days' + n * interval '1 ms'
      FROM generate_series(1, 3000) AS n`)
    const pausesMs: number[] = []
    const cleanUp = new CleanUp(postgres.database(), 86_400_000)
    while (pausesMs.at(-1) !== 60_000) pausesMs.push(await cleanUp.step())
    expect(await keys()).toBe(12_000)
    const [found] = await postgres.query<{ count: string }>('SELECT last_value AS count FROM $schema.found')
    expect(Number(found?.count)).toBe(6_000)
    // Steps that only find what stays rest longer.
    expect(pausesMs).toEqual([...Array(6).fill(1_000), 100, 60_000])
  })
})
