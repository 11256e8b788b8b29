import { describe, expect, test, vi } from 'vitest'
import { findPostgres } from '../../support/postgres/find-postgres.ts'
import { accept, postgresTests } from './postgres-tests.ts'

describe.skipIf(!findPostgres())('sequences that began again, as after a failover to a logical replica', () => {
  const postgres = postgresTests()

  test('are raised above the ids of the tables at the start', async () => {
    const first = postgres.receiver({}, { retry: { attempts: 1 } }).onAny(({ mediaId }) => {
      if (mediaId === 'dead') throw new Error('no')
    })
    await first.ready()
    for (const mediaId of ['dead', 'one', 'two']) await accept(first, mediaId)
    await postgres.allEnded()
    await first.close()
    await postgres.query(`SELECT setval('$schema.event_id_seq', 1, false)`)
    const second = postgres.receiver({}, { retry: { attempts: 1 } }).onAny(() => {
      throw new Error('no')
    })
    await second.ready()
    await accept(second, 'later')
    await vi.waitFor(async () => expect(await second.inbox.deadLetters.list()).toHaveLength(2))
    expect(await postgres.query('SELECT max(id)::int AS id FROM $schema.event')).toEqual([{ id: 4 }])
  })
})
