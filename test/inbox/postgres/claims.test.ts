import { setTimeout as sleep } from 'node:timers/promises'
import { describe, expect, test, vi } from 'vitest'
import { findPostgres } from '../../support/postgres/find-postgres.ts'
import { recordingLogger } from '../../support/recording-logger.ts'
import { signalled } from '../../support/signalled.ts'
import { accept, postgresTests } from './postgres-tests.ts'

describe.skipIf(!findPostgres())('a claim', () => {
  const postgres = postgresTests()

  test('writes no event, so that other sessions cannot hold it up', async () => {
    const accepting = postgres.receiver({ handles: false }).onAny(() => {})
    await accepting.ready()
    for (const user of ['one', 'two']) await accept(accepting, 'media', user)
    const client = await postgres.pool.connect()
    await client.query(`BEGIN; SELECT 1 FROM ${postgres.schema}.event ORDER BY id LIMIT 1 FOR UPDATE`)
    const handled: (string | undefined)[] = []
    const receiver = postgres.receiver({ listen: false }).onAny(({ userId }) => void handled.push(userId))
    await receiver.ready()
    await vi.waitFor(() => expect(handled).toEqual(['one', 'two']))
    await client.query('COMMIT')
    client.release()
    await vi.waitFor(async () => expect(await receiver.inbox.stats()).toMatchObject({ waiting: 0, running: 0 }))
  })

  test('leaves the events of a media item to its process, however many older ones of them are replayed', async () => {
    const first = postgres.receiver({}, { retry: { attempts: 1 } })
    const resume = signalled()
    const handled: (string | undefined)[] = []
    let fails = true
    const handle = async ({ userId }: { userId?: string | undefined }) => {
      if (fails) throw new Error('no')
      if (userId === 'last') await resume.promise
      handled.push(userId)
    }
    first.onAny(handle, { name: 'handle' })
    await first.ready()
    const numbers = Array.from({ length: 150 }, (_, index) => `${index}`)
    for (const number of numbers) await accept(first, 'media', number)
    await vi.waitFor(async () => expect((await first.inbox.stats()).deadLetters).toBe(150))
    fails = false
    await accept(first, 'media', 'last')
    await vi.waitFor(async () => expect((await first.inbox.stats()).running).toBe(1))
    // It has enough events of this media item, so that the other process could claim those that are replayed.
    const second = postgres.receiver().onAny(handle, { name: 'handle' })
    await second.ready()
    await first.inbox.deadLetters.replayAll?.({ perSecond: 10_000 })
    await accept(second, 'other')
    await vi.waitFor(() => expect(handled).toEqual(['user']))
    await accept(second, 'another')
    await vi.waitFor(() => expect(handled).toEqual(['user', 'user']))
    resume.resolve()
    await vi.waitFor(() => expect(handled).toHaveLength(153))
    expect(handled).toEqual(['user', 'user', 'last', ...numbers])
  })

  test('comes to an old event that a process releases before the later ones of its media item', async () => {
    const stays = postgres.receiver({ handles: false }).onAny(() => {})
    await stays.ready()
    const started = signalled()
    const handled: (string | undefined)[] = []
    const first = postgres.receiver()
    first.onAny(
      async ({ userId }, { signal }) => {
        if (userId !== 'old') return void handled.push(userId)
        started.resolve()
        await new Promise((_, reject) => signal.addEventListener('abort', () => reject(signal.reason)))
      },
      { name: 'handle' },
    )
    await first.ready()
    await accept(stays, 'media', 'old')
    await started.promise
    const second = postgres.receiver({ listen: false })
    second.onAny(({ userId }) => void handled.push(userId), { name: 'handle' })
    await second.ready()
    for (const mediaId of ['a', 'b', 'c']) await accept(stays, mediaId)
    await vi.waitFor(() => expect(handled).toHaveLength(3))
    await accept(stays, 'media', 'new')
    await first.close({ timeoutMs: 0 })
    await vi.waitFor(() => expect(handled).toEqual(['user', 'user', 'user', 'old', 'new']))
  })

  test.each([true, false])('comes to an old event that is replayed (listen: %s)', async (listen) => {
    let fails = true
    const handled: string[] = []
    const receiver = postgres.receiver({ listen }, { retry: { attempts: 1 } }).onAny(({ mediaId }) => {
      if (fails) throw new Error('no')
      handled.push(mediaId)
    })
    await receiver.ready()
    await accept(receiver, 'old')
    const { deadLetters } = receiver.inbox
    await vi.waitFor(async () => expect(await deadLetters.list()).toHaveLength(1))
    fails = false
    for (const mediaId of ['a', 'b']) {
      await accept(receiver, mediaId)
      await vi.waitFor(() => expect(handled).toContain(mediaId))
    }
    await deadLetters.replayAll?.()
    await vi.waitFor(() => expect(handled).toEqual(['a', 'b', 'old']))
  })

  test('comes within seconds to an event that was accepted before others, and committed after their claim', async () => {
    const accepting = postgres.receiver({ handles: false }).onAny(() => {})
    await accepting.ready()
    await postgres.query(`
      CREATE FUNCTION $schema.slowly() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN PERFORM pg_sleep(0.7); RETURN NEW; END';
      CREATE TRIGGER slowly BEFORE INSERT ON $schema.event FOR EACH ROW WHEN (NEW.head::text LIKE '%slow%')
        EXECUTE FUNCTION $schema.slowly()`)
    const handled: string[] = []
    const receiver = postgres.receiver().onAny(({ mediaId }) => void handled.push(mediaId))
    await receiver.ready()
    // Renewals look around too: the next one is 10 s away.
    await sleep(1_500)
    const slow = accept(accepting, 'slow')
    await sleep(200)
    await accept(accepting, 'fast')
    await vi.waitFor(() => expect(handled).toEqual(['fast']))
    await slow
    await vi.waitFor(() => expect(handled).toEqual(['fast', 'slow']), 5_000)
  })

  test('that Postgres carries out after the process gave it up leaves its lane neither unhandled nor held', async () => {
    const accepting = postgres.receiver({ handles: false }).onAny(() => {})
    await accepting.ready()
    const handled = vi.fn()
    // Without LISTEN, Postgres does not end a statement that the process has given up: the next claim waits behind it.
    const receiver = postgres.receiver({ timeoutMs: 300, leaseMs: 600, listen: false }).onAny(handled)
    await receiver.ready()
    const claims = await postgres.claimsHeldUp()
    await accept(accepting, 'media')
    await vi.waitFor(async () => expect(await claims.waiting()).toBeGreaterThan(1))
    await claims.goOn()
    await vi.waitFor(() => expect(handled).toHaveBeenCalledOnce())
    await receiver.close()
    expect(await postgres.held()).toEqual([])
  })

  test('that reaches Postgres after later ones changes no order', async () => {
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
    const numbers = Array.from({ length: 17 }, (_, index) => `${index}`)
    for (const number of numbers.slice(0, 16)) await accept(accepting, 'media', number)
    await vi.waitFor(async () => expect(await postgres.held()).toHaveLength(1))
    await accept(accepting, 'media', '16')
    await carryOut()
    finish.resolve()
    await vi.waitFor(() => expect(handled).toEqual(numbers))
  })

  test('brings large events although only a few arrive in time', async () => {
    const accepting = postgres.receiver({ handles: false }).onAny(() => {})
    await accepting.ready()
    const { proxy, pool } = await postgres.throughProxy()
    const handled: string[] = []
    const receiver = postgres.receiver({ pool, timeoutMs: 500, listen: false })
    receiver.onAny(({ mediaId }) => void handled.push(mediaId))
    await receiver.ready()
    const media = Array.from({ length: 40 }, (_, index) => `${index}`)
    proxy.slowDown(400_000)
    for (const mediaId of media) await accept(accepting, mediaId, 'x'.repeat(30_000))
    await vi.waitFor(() => expect(new Set(handled).size).toBe(40), 30_000)
    expect(handled).toHaveLength(40)
  })

  test('that takes too long again and again is logged, once', async () => {
    const { logger, lines } = recordingLogger('warn')
    const receiver = postgres.receiver({ timeoutMs: 300 }, { logger }).onAny(() => {})
    await receiver.ready()
    const claims = await postgres.claimsHeldUp()
    await accept(receiver, 'media')
    const told = () => lines.filter(({ message }) => message === 'the inbox could not claim events')
    await vi.waitFor(() =>
      expect(told()).toMatchObject([
        { level: 'error', details: { err: { message: expect.stringMatching(/timeout/) } } },
      ]),
    )
    await claims.goOn()
  })
})
