import { describe, expect, test, vi } from 'vitest'
import { findPostgres } from '../../support/postgres/find-postgres.ts'
import { signalled } from '../../support/signalled.ts'
import { accept, postgresTests } from './postgres-tests.ts'

describe.skipIf(!findPostgres())('a claim that Postgres carries out after the process gave it up', () => {
  const postgres = postgresTests()

  /**
   * Opens a receiver whose first claim waits in Postgres for so long that the process gives it up and asks again. The
   * second claim waits behind the first. Then both are carried out.
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
    await vi.waitFor(async () => expect(await claims.waiting()).toBe(2))
    await meanwhile()
    await claims.goOn()
    return { receiver, handled }
  }

  test('claims nothing, so that the event is handled', async () => {
    const { handled } = await withLateClaim()
    await vi.waitFor(() => expect(handled).toHaveBeenCalledWith('media'))
  })

  test('lets the event be recorded as handled, if the process has begun a new lease since', async () => {
    const owners = () => postgres.query<{ id: string }>('SELECT id FROM $schema.process WHERE NOT is_dead')
    const { handled } = await withLateClaim(async () => {
      const [before] = await owners()
      await postgres.query('UPDATE $schema.process SET is_dead = true')
      await vi.waitFor(async () => {
        const [now] = await owners()
        expect(now?.id ?? before?.id).not.toBe(before?.id)
      }, 5_000)
    })
    await vi.waitFor(() => expect(handled).toHaveBeenCalledWith('media'))
    await vi.waitFor(async () => expect(await postgres.query('SELECT id FROM $schema.event WHERE ended_at IS NULL AND died_at IS NULL')).toEqual([]))
  })

  test('leaves no event behind that no process has', async () => {
    const { receiver } = await withLateClaim()
    await receiver.close()
    expect(await postgres.held()).toEqual([])
  })

  test('claims nothing, even if it reaches Postgres after the next ones', async () => {
    const accepting = postgres.receiver({ handles: false }).onAny(() => {})
    await accepting.ready()
    const { proxy, pool } = await postgres.throughProxy()
    const delayed = proxy.delay('AS claimed')
    const handled: (string | undefined)[] = []
    const finish = signalled()
    postgres.receiver({ pool, timeoutMs: 500, listen: false }).onAny(async ({ userId }) => {
      await finish.promise
      handled.push(userId)
    })
    const carryOut = await delayed
    // As many events of one media item as a process has at a time: the late claim could claim the next one.
    const numbers = Array.from({ length: 17 }, (_, index) => `${index}`)
    for (const number of numbers.slice(0, 16)) await accept(accepting, 'media', number)
    await vi.waitFor(async () => expect(await postgres.held()).toHaveLength(16))
    await accept(accepting, 'media', '16')
    await carryOut()
    finish.resolve()
    await vi.waitFor(() => expect(handled).toEqual(numbers))
  })
})
