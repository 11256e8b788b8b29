import { describe, expect, test, vi } from 'vitest'
import { findPostgres } from '../../support/postgres/find-postgres.ts'
import { accept, postgresTests } from './postgres-tests.ts'

describe.skipIf(!findPostgres())('the loss of everything that Postgres has only in its memory', () => {
  const postgres = postgresTests()

  /** From now on, only a commit that waits for the disk writes there, with everything before it. */
  async function suspendWalWriter() {
    const query = "SELECT pid FROM pg_stat_activity WHERE backend_type = 'walwriter'"
    const [writer] = await postgres.query<{ pid: number }>(query)
    process.kill(writer?.pid as number, 'SIGSTOP')
  }

  async function loseMemory() {
    await postgres.server.stop('SIGKILL')
    await postgres.server.restart()
  }

  test('takes a commit that did not wait for the disk', async () => {
    await postgres.query('CREATE TABLE commit (waits boolean)')
    await suspendWalWriter()
    await postgres.query('INSERT INTO commit VALUES (true)')
    await postgres.query('BEGIN; SET LOCAL synchronous_commit = off; INSERT INTO commit VALUES (false); COMMIT')
    await loseMemory()
    expect(await postgres.query('SELECT waits FROM commit')).toEqual([{ waits: true }])
  })

  test('takes no acknowledged event, though the connection that accepts it claims events as well', async () => {
    await suspendWalWriter()
    // The lease is longer than the test, since a renewal waits for the disk.
    const receiver = postgres.receiver({ leaseMs: 600_000 })
    const started: string[] = []
    receiver.onAny(({ mediaId }) => {
      started.push(mediaId)
      return new Promise(() => {})
    })
    await receiver.ready()
    const media = Array.from({ length: 10 }, (_, index) => `media ${index}`)
    for (const mediaId of media) {
      expect(await accept(receiver, mediaId)).toBe('accepted')
      if (mediaId !== media.at(-1)) await vi.waitFor(() => expect(started).toContain(mediaId), { interval: 5 })
    }
    await loseMemory()
    const kept = await postgres.query<{ media: string }>('SELECT head ->> 1 AS media FROM $schema.event ORDER BY id')
    expect(kept.map(({ media: mediaId }) => mediaId)).toEqual(media)
  })
})
