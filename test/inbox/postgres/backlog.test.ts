import { setTimeout as sleep } from 'node:timers/promises'
import { describe, expect, test, vi } from 'vitest'
import { PermanentFailure } from '../../../src/index.ts'
import { ownTime } from '../../support/own-time.ts'
import { findPostgres } from '../../support/postgres/find-postgres.ts'
import { accept, postgresTests } from './postgres-tests.ts'

describe.skipIf(!findPostgres())('a backlog of events of one media item', () => {
  const postgres = postgresTests()

  /** Makes 20,000 copies of the one event that waits, as if as many had been accepted. Postgres has no statistics of them. */
  async function multiply() {
    await postgres.query(`
      INSERT INTO $schema.event (hash, media, event, head, received_at, owed)
      SELECT gen_random_uuid(), media, (event::jsonb || jsonb_build_object('key', n::text))::json, head, received_at, owed
      FROM $schema.event, generate_series(1, 20000) AS n`)
  }

  async function withBacklog() {
    const accepting = postgres.receiver({ handles: false }).onAny(() => {})
    await accepting.ready()
    await accept(accepting, 'crowded')
    await multiply()
    return accepting
  }

  test('does not hold up the events of others, in the same process or in another', async () => {
    const accepting = await withBacklog()
    const handled: string[] = []
    const handle = async ({ mediaId }: { mediaId: string }) => {
      await sleep(mediaId === 'crowded' ? 50 : 0)
      handled.push(mediaId)
    }
    const receivers = [1, 2].map(() => postgres.receiver({ leaseMs: 5_000 }).onAny(handle, { name: 'handle' }))
    await Promise.all(receivers.map((receiver) => receiver.ready()))
    await vi.waitFor(() => expect(handled.length).toBeGreaterThan(2))
    for (let index = 0; index < 20; index++) {
      const elapsed = ownTime()
      await accept(accepting, `other ${index}`)
      await vi.waitFor(() => expect(handled).toContain(`other ${index}`), { interval: 5 })
      expect(elapsed()).toBeLessThan(1_000)
    }
    expect(handled.filter((mediaId) => mediaId === 'crowded').length).toBeLessThan(1_000)
  })

  test('is handled without pauses', async () => {
    const accepting = postgres.receiver({ handles: false }).onAny(() => {})
    await accepting.ready()
    for (let index = 0; index < 400; index++) await accept(accepting, 'crowded', `${index}`)
    const handled: (string | undefined)[] = []
    const receiver = postgres.receiver().onAny(({ userId }) => void handled.push(userId))
    await receiver.ready()
    await vi.waitFor(() => expect(handled.length).toBe(400))
    expect(handled).toEqual(Array.from({ length: 400 }, (_, index) => `${index}`))
  })

  test('that waits behind a suspect does not hold up the events of others', async () => {
    const accepting = await withBacklog()
    await postgres.query('UPDATE $schema.event SET crashes = 1 WHERE id = (SELECT min(id) FROM $schema.event)')
    const handled: string[] = []
    const receiver = postgres.receiver().onAny(async ({ mediaId }, { signal }) => {
      handled.push(mediaId)
      if (mediaId === 'crowded') await new Promise((resolve) => signal.addEventListener('abort', resolve))
    })
    await receiver.ready()
    await vi.waitFor(() => expect(handled).toEqual(['crowded']))
    await accept(accepting, 'other')
    await vi.waitFor(() => expect(handled).toEqual(['crowded', 'other']))
  })
})

describe.skipIf(!findPostgres())('media items that are held back in strict order', () => {
  const postgres = postgresTests()

  test('add nothing to what a new event reads, nor to a replay without notifications, however many there are', async () => {
    let fails = true
    const handled: string[] = []
    const receiver = postgres.receiver({ listen: false }, { order: 'strict', retry: { attempts: 1 } })
    receiver.onAny(({ mediaId }) => {
      if (fails) throw new Error('no')
      handled.push(mediaId)
    })
    await receiver.ready()
    await accept(receiver, 'dead')
    await vi.waitFor(async () => expect(await receiver.inbox.deadLetters.list()).toHaveLength(1))
    fails = false
    await postgres.query(`
      WITH blocked AS (
        INSERT INTO $schema.event (hash, media, event, head, received_at, owed, due_at, delayed_at)
        SELECT gen_random_uuid(), n / 2, event, head, received_at, owed,
          CASE WHEN n % 2 = 0 THEN now() + interval '1 h' END, CASE WHEN n % 2 = 0 THEN now() END
        FROM $schema.event, generate_series(2, 40001) AS n RETURNING media, due_at
      ) INSERT INTO $schema.lane (media, ready_at) SELECT media, due_at FROM blocked WHERE due_at IS NOT NULL`)
    const read = async () => {
      const [row] = await postgres.query<{ rows: string }>(
        `SELECT sum(seq_tup_read + idx_tup_fetch) AS rows FROM pg_stat_user_tables
         WHERE schemaname = $1 AND relname IN ('event', 'lane')`,
        [postgres.schema],
      )
      return Number(row?.rows)
    }
    const before = await read()
    for (let index = 0; index < 10; index++) {
      await accept(receiver, `${index}`)
      await vi.waitFor(() => expect(handled).toHaveLength(index + 1))
    }
    const elapsed = ownTime()
    await receiver.inbox.deadLetters.replayAll?.()
    await vi.waitFor(() => expect(handled).toHaveLength(11))
    expect(elapsed()).toBeLessThan(3_000)
    // Statistics come with a delay.
    await sleep(1_500)
    expect((await read()) - before).toBeLessThan(2_000)
  })

  test('let a replayed event run after all that wait', async () => {
    const handled: (string | undefined)[] = []
    let fails = true
    const receiver = postgres.receiver({}, { order: 'strict', retry: { attempts: 2, baseMs: 500, maxMs: 500 } })
    receiver.onAny(({ userId }, { attempt }) => {
      if (userId === 'R' && fails) throw new PermanentFailure('no')
      handled.push(userId)
      if (userId === 'A' && attempt === 1) throw new Error('no')
    })
    await receiver.ready()
    await accept(receiver, 'media', 'R')
    await vi.waitFor(async () => expect(await receiver.inbox.deadLetters.list()).toHaveLength(1))
    fails = false
    for (const user of ['A', 'B', 'C']) await accept(receiver, 'media', user)
    await vi.waitFor(() => expect(handled).toEqual(['A']))
    await receiver.inbox.deadLetters.replayAll?.()
    await vi.waitFor(() => expect(handled).toEqual(['A', 'A', 'B', 'C', 'R']))
  })
})
