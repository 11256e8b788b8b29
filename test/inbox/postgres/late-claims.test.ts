import { describe, expect, test, vi } from 'vitest'
import { findPostgres } from '../../postgres/find-postgres.ts'
import { accept, postgresTests } from './fixture.ts'

vi.setConfig({ testTimeout: 30_000 })

describe.skipIf(!findPostgres())('a claim that Postgres carries out after the process gave it up', () => {
  const postgres = postgresTests()

  /**
   * Opens a receiver whose first claim waits in Postgres for so long that the process gives it up and asks again, which
   * waits behind it. Both are carried out then.
   * @param meanwhile what happens while they wait
   */
  async function withLateClaim(meanwhile = async () => {}) {
    const accepting = postgres.receiver({ handles: false }).onAny(() => {})
    await accepting.ready()
    const claims = await postgres.claimsHeldUp()
    await accept(accepting, 'media')
    const handled = vi.fn()
    // Without LISTEN, Postgres does not end a statement that the process has given up.
    const receiver = postgres
      .receiver({ timeoutMs: 300, leaseMs: 600, listen: false })
      .onAny(({ mediaId }) => handled(mediaId))
    await receiver.ready()
    await vi.waitFor(async () => expect(await claims.waiting()).toBe(2), 15_000)
    await meanwhile()
    await claims.goOn()
    return { receiver, handled }
  }

  test('claims nothing, so that the event is handled', async () => {
    const { handled } = await withLateClaim()
    await vi.waitFor(() => expect(handled).toHaveBeenCalledWith('media'), 15_000)
  })

  test('lets the event be recorded as handled, if the process has begun a new lease since', async () => {
    const owners = () => postgres.query<{ id: string }>('SELECT id FROM $schema.owner WHERE NOT is_dead')
    const { handled } = await withLateClaim(async () => {
      const [before] = await owners()
      await postgres.query('UPDATE $schema.owner SET is_dead = true')
      await vi.waitFor(async () => {
        const [now] = await owners()
        expect(now?.id ?? before?.id).not.toBe(before?.id)
      }, 5_000)
    })
    await vi.waitFor(() => expect(handled).toHaveBeenCalledWith('media'), 15_000)
    await vi.waitFor(async () => expect(await postgres.query('SELECT id FROM $schema.event')).toEqual([]), 5_000)
  })

  test('leaves no event behind that no process has', async () => {
    const { receiver } = await withLateClaim()
    await receiver.close()
    const orphans = await postgres.query(
      'SELECT id FROM $schema.event WHERE owner IS NOT NULL AND owner NOT IN (SELECT id FROM $schema.owner)',
    )
    expect(orphans).toEqual([])
  })
})
