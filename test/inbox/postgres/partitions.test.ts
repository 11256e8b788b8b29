import { describe, expect, test, vi } from 'vitest'
import { findPostgres } from '../../support/postgres/find-postgres.ts'
import { signalled } from '../../support/signalled.ts'
import { accept, postgresTests } from './postgres-tests.ts'

describe.skipIf(!findPostgres())('a process that is cut off from Postgres', () => {
  const postgres = postgresTests()
  const sleep = (ms: number) => new Promise((resolve) => setTimeout(resolve, ms))
  const leaseMs = 1_000

  /** Opens a process behind a proxy, which handles one event at a time, and has claimed several. */
  async function cutOff(handle: (mediaId: string, signal: AbortSignal) => Promise<unknown>) {
    const { proxy, pool } = await postgres.throughProxy()
    const receiver = postgres.receiver({ pool, leaseMs, concurrency: 1, timeoutMs: 300 })
    receiver.onAny(({ mediaId }, { signal }) => handle(mediaId, signal) as Promise<void>, { name: 'handle' })
    await receiver.ready()
    return { receiver, proxy }
  }

  test('starts nothing after its lease, aborts what runs, and goes on once it is back', async () => {
    const begun: number[] = []
    const aborted: unknown[] = []
    const { receiver, proxy } = await cutOff(async (_, signal) => {
      begun.push(performance.now())
      signal.addEventListener('abort', () => aborted.push(signal.reason))
      // Longer than the lease: the two events that it claims at a time must not be over before.
      await sleep(1_500)
    })
    const front = postgres.receiver({ handles: false }).onAny(() => {})
    await front.ready()
    for (let index = 0; index < 30; index++) await accept(front, `media ${index}`)
    await vi.waitFor(() => expect(begun.length).toBeGreaterThan(1), 10_000)
    const endsAt = performance.now() + leaseMs
    await proxy.breakFor(2 * leaseMs)
    expect(aborted).toMatchObject([{ code: 'lease_lost' }])
    expect(begun.filter((at) => at > endsAt && at < endsAt + leaseMs)).toEqual([])
    const before = begun.length
    await vi.waitFor(() => expect(begun.length).toBeGreaterThan(before + 1), 20_000)
    expect((await receiver.inbox.stats()).deadLetters).toBe(0)
  })

  test('records a result that waited for Postgres longer than the lease, if no process has taken the event over', async () => {
    const finish = signalled()
    const handle = vi.fn(() => finish.promise)
    const { receiver, proxy } = await cutOff(handle)
    await accept(receiver, 'media')
    await vi.waitFor(() => expect(handle).toHaveBeenCalledTimes(1))
    const broken = proxy.breakFor(2 * leaseMs)
    finish.resolve()
    await broken
    await vi.waitFor(
      async () => expect(await postgres.query('SELECT id FROM $schema.event WHERE ended_at IS NULL')).toEqual([]),
      5_000,
    )
    expect(handle).toHaveBeenCalledTimes(1)
  })
})

describe.skipIf(!findPostgres())('a process with a new lease', () => {
  const postgres = postgresTests()

  const expireAll = () => postgres.query("UPDATE $schema.process SET expires_at = now() - interval '1 s'")

  test.each([
    ['notified of', true],
    ['polling for', false],
  ])('leaves the media item of a handler that ignores its signal to others %s it', async (_, listen) => {
    const ignores = vi.fn()
    const first = postgres.receiver({ leaseMs: 600, listen }).onAny(
      ({ userId }) => {
        ignores(userId)
        return new Promise(() => {})
      },
      { name: 'handle' },
    )
    await first.ready()
    await accept(first, 'media', '1')
    await vi.waitFor(() => expect(ignores).toHaveBeenCalledWith('1'))
    await accept(first, 'media', '2')
    await expireAll()
    await vi.waitFor(
      async () =>
        expect(await postgres.query('SELECT id FROM $schema.process WHERE expires_at > now()')).toHaveLength(1),
      5_000,
    )
    const handled: (string | undefined)[] = []
    const second = postgres
      .receiver({ leaseMs: 600, listen })
      .onAny(({ userId }) => void handled.push(userId), { name: 'handle' })
    await second.ready()
    await vi.waitFor(() => expect(handled).toEqual(['1', '2']), 5_000)
    expect(ignores.mock.calls).toEqual([['1']])
  })

  test('does not claim with what it held before', async () => {
    const { proxy, pool } = await postgres.throughProxy()
    const began: (string | undefined)[] = []
    const first = postgres.receiver({ pool, leaseMs: 600, timeoutMs: 5_000, listen: false }).onAny(
      ({ userId }, { signal }) => {
        began.push(userId)
        return new Promise<void>((resolve, reject) => {
          if (began.length > 1) return resolve()
          signal.addEventListener('abort', () => reject(signal.reason))
        })
      },
      { name: 'handle' },
    )
    await first.ready()
    await accept(first, 'media', '1')
    await vi.waitFor(() => expect(began).toEqual(['1']))
    const searching = await proxy.delay(' AS marks')
    await accept(first, 'media', '2')
    await expireAll()
    const other = postgres.receiver({ leaseMs: 600 })
    await other.ready()
    await vi.waitFor(
      async () => expect(await postgres.query('SELECT id FROM $schema.process WHERE expires_at <= now()')).toEqual([]),
      5_000,
    )
    await other.close()
    await vi.waitFor(
      async () =>
        expect(await postgres.query('SELECT id FROM $schema.process WHERE expires_at > now()')).toHaveLength(1),
      5_000,
    )
    await searching()
    await vi.waitFor(() => expect(began).toHaveLength(3), 5_000)
    // In any order: `other` may have claimed the first event, and left it to a process that has its handler.
    expect(began.toSorted()).toEqual(['1', '1', '2'])
  })
})
