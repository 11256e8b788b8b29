import { setTimeout as sleep } from 'node:timers/promises'
import { describe, expect, test, vi } from 'vitest'
import { openInboxDatabase } from '../../../src/inbox/postgres.ts'
import { deliver } from '../../../src/testing/index.ts'
import { eventOf } from '../../support/inbox.ts'
import { ownTime } from '../../support/own-time.ts'
import { findPostgres } from '../../support/postgres/find-postgres.ts'
import { recordingLogger } from '../../support/recording-logger.ts'
import { signalled } from '../../support/signalled.ts'
import { accept, postgresTests } from './postgres-tests.ts'

describe.skipIf(!findPostgres())('while Postgres', () => {
  const postgres = postgresTests()

  /** Delivers events, 20 at a time, until it is stopped. Returns the outcomes by media. */
  function deliverEvents(receiver: Parameters<typeof accept>[0], name: string) {
    const outcomes = new Map<string, string>()
    let isOver = false
    const senders = Array.from({ length: 20 }, async (_, sender) => {
      for (let index = 0; !isOver; index++) {
        const mediaId = `${name} ${sender} ${index}`
        outcomes.set(mediaId, await accept(receiver, mediaId))
        await sleep(2)
      }
    })
    return async () => {
      isOver = true
      await Promise.all(senders)
      return outcomes
    }
  }

  const accepted = (outcomes: ReadonlyMap<string, string>) =>
    [...outcomes].filter(([, outcome]) => outcome === 'accepted').map(([mediaId]) => mediaId)

  test('loses every connection, deliveries wait for new ones, and nothing is lost or handled twice', async () => {
    const receiver = postgres.receiver({ timeoutMs: 10_000 })
    const handled = new Map<string, number>()
    receiver.onAny(({ mediaId }) => void handled.set(mediaId, (handled.get(mediaId) ?? 0) + 1))
    await receiver.ready()
    const stop = deliverEvents(receiver, 'terminated')
    for (let round = 0; round < 4; round++) {
      await sleep(150)
      await postgres.server.query(
        'SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE pid <> pg_backend_pid() AND datname IS NOT NULL',
      )
    }
    await sleep(200)
    const outcomes = await stop()
    // A statement whose answer was lost may have stored its events.
    expect(new Set(outcomes.values())).not.toContain('unavailable')
    await vi.waitFor(() => expect(handled.size).toBe(outcomes.size))
    expect(accepted(outcomes).filter((mediaId) => !handled.has(mediaId))).toEqual([])
    expect([...handled].filter(([, runs]) => runs > 1)).toEqual([])
  })

  test.each(['SIGINT', 'SIGKILL'] as const)(
    'restarts after %s, deliveries wait, and no event is lost',
    async (signal) => {
      const receiver = postgres.receiver({ timeoutMs: 10_000 })
      const handled = new Set<string>()
      receiver.onAny(({ mediaId }) => void handled.add(mediaId))
      await receiver.ready()
      const stop = deliverEvents(receiver, signal)
      await sleep(200)
      await postgres.server.stop(signal)
      await sleep(100)
      await postgres.server.restart()
      await sleep(300)
      const outcomes = await stop()
      expect([...outcomes.values()].filter((outcome) => outcome === 'unavailable')).toEqual([])
      await vi.waitFor(() => expect(accepted(outcomes).filter((mediaId) => !handled.has(mediaId))).toEqual([]))
    },
  )

  test('is stopped, deliveries are answered 503 in time, and the inbox recovers by itself', async () => {
    const receiver = postgres.receiver({ timeoutMs: 500 })
    const handled = vi.fn()
    receiver.onAny(({ mediaId }) => handled(mediaId))
    await receiver.ready()
    await postgres.server.stop('SIGINT')
    try {
      const elapsed = ownTime()
      expect(await accept(receiver, 'during')).toBe('unavailable')
      expect(elapsed()).toBeLessThan(1_500)
    } finally {
      await postgres.server.restart()
    }
    await vi.waitFor(async () => expect(await accept(receiver, 'after')).toMatch(/accepted|duplicate/))
    await vi.waitFor(() => expect(handled).toHaveBeenCalledWith('after'))
  })

  test('hangs, deliveries are answered 503 in time, as many as there are, and the inbox recovers by itself', async () => {
    const receiver = postgres.receiver({ timeoutMs: 500 })
    const handled = new Set<string>()
    receiver.onAny(({ mediaId }) => void handled.add(mediaId))
    await receiver.ready()
    const media = Array.from({ length: 6_000 }, (_, index) => `hung ${index}`)
    postgres.server.pause()
    let outcomes: string[]
    try {
      const elapsed = ownTime()
      outcomes = await Promise.all(media.map((mediaId) => accept(receiver, mediaId)))
      expect(elapsed()).toBeLessThan(4_000)
    } finally {
      postgres.server.resume()
    }
    expect(new Set(outcomes)).toEqual(new Set(['unavailable', 'overloaded']))
    // The limit of events in memory.
    expect(outcomes.filter((outcome) => outcome === 'unavailable').length).toBe(5_000)
    await vi.waitFor(async () => expect(await accept(receiver, 'after')).toBe('accepted'))
    await vi.waitFor(() => expect(handled).toContain('after'))
  })

  test('is unreachable when a handler has succeeded, its success is recorded once Postgres is back', async () => {
    const receiver = postgres.receiver()
    const started = signalled()
    const finish = signalled()
    const runs = vi.fn()
    receiver.onAny(async () => {
      runs()
      started.resolve()
      await finish.promise
    })
    await receiver.ready()
    await accept(receiver, 'media')
    await started.promise
    await postgres.server.stop('SIGINT')
    finish.resolve()
    await sleep(300)
    await postgres.server.restart()
    await vi.waitFor(async () => expect((await receiver.inbox.stats()).running).toBe(0))
    expect(await postgres.query('SELECT 1 FROM $schema.event WHERE ended_at IS NULL')).toEqual([])
    expect(runs).toHaveBeenCalledTimes(1)
  })

  test('is unreachable when a handler has succeeded and the inbox closes, the event is unfinished, and is handled again', async () => {
    const { logger, lines } = recordingLogger('info')
    const receiver = postgres.receiver({}, { logger })
    const finish = signalled()
    const started = signalled()
    const run = async () => {
      started.resolve()
      await finish.promise
    }
    receiver.onAny(run, { name: 'h' })
    await receiver.ready()
    await accept(receiver, 'media')
    await started.promise
    await postgres.server.stop('SIGINT')
    finish.resolve()
    const { unfinished } = await receiver.close({ timeoutMs: 100 })
    await postgres.server.restart()
    expect(unfinished).toMatchObject([{ event: { mediaId: 'media' }, state: 'running' }])
    const message = 'the inbox closed before it could record the end of these events; their handlers may run again'
    const keys = unfinished.map(({ event }) => event.key)
    expect(lines.filter(({ details }) => 'keys' in details)).toEqual([{ level: 'warn', message, details: { keys } }])
    expect(lines.filter((line) => line.message.includes('another process will handle it'))).toEqual([])
    expect(await postgres.query('SELECT 1 FROM $schema.event')).toHaveLength(1)
  })

  test('hangs, an inbox with a step that takes a minute closes in its time', async () => {
    const { inbox, ready } = postgres.receiver({ timeoutMs: 60_000 })
    await ready()
    postgres.server.pause()
    const accepting = Promise.allSettled([inbox.accept(eventOf('one'))])
    const elapsed = ownTime()
    expect(await inbox.close({ timeoutMs: 1_000 })).toEqual({ unfinished: [] })
    expect(elapsed()).toBeLessThan(3_000)
    postgres.server.resume()
    await accepting
  })

  test('does not answer a claim, an inbox closes in its time, and the event is handled by the next process', async () => {
    const first = postgres.receiver({ timeoutMs: 60_000 }).onAny(() => {})
    await first.ready()
    const claims = await postgres.claimsHeldUp()
    await accept(first, 'media')
    await vi.waitFor(async () => expect(await claims.waiting()).toBeGreaterThan(0))
    const elapsed = ownTime()
    expect(await first.close({ timeoutMs: 1_000 })).toEqual({ unfinished: [] })
    expect(elapsed()).toBeLessThan(3_000)
    await claims.goOn()
    const handled: string[] = []
    const next = postgres.receiver().onAny(({ mediaId }) => void handled.push(mediaId))
    await next.ready()
    await vi.waitFor(() => expect(handled).toEqual(['media']))
  })

  test('was unreachable when the receiver was made, it opens the inbox once Postgres is back', async () => {
    await postgres.server.stop('SIGINT')
    const receiver = postgres.receiver({ timeoutMs: 300 })
    const handled = vi.fn()
    receiver.onAny(handled)
    try {
      await expect(receiver.ready()).rejects.toMatchObject({ name: 'WebhookError', code: 'unavailable' })
      expect(await accept(receiver, 'media')).toBe('unavailable')
    } finally {
      await postgres.server.restart()
    }
    // A commit that answers after timeoutMs makes the next delivery a duplicate.
    await vi.waitFor(async () => expect(await accept(receiver, 'media')).toMatch(/^(accepted|duplicate)$/))
    await vi.waitFor(() => expect(handled).toHaveBeenCalledTimes(1))
    await receiver.ready()
  })
})

describe.skipIf(!findPostgres())('a claim whose answer was lost', () => {
  const postgres = postgresTests()

  /** A receiver that accepts, and one behind a proxy that handles. That one polls, since it hears of no event. */
  async function behindProxy() {
    const { proxy, pool } = await postgres.throughProxy()
    const accepting = postgres.receiver({ handles: false }).onAny(() => {})
    await accepting.ready()
    const receiver = postgres.receiver({ pool, listen: false, timeoutMs: 500 })
    const handled = vi.fn()
    receiver.onAny(({ mediaId }) => handled(mediaId))
    await receiver.ready()
    return { proxy, accepting, receiver, handled }
  }

  test('is given up, so that its events are handled', async () => {
    const { proxy, accepting, handled } = await behindProxy()
    await sleep(100)
    proxy.mute()
    await accept(accepting, 'media')
    await vi.waitFor(async () => expect(await postgres.held()).toHaveLength(1), { interval: 2 })
    await proxy.breakFor(20)
    await vi.waitFor(() => expect(handled).toHaveBeenCalledWith('media'))
  })

  test('is given up although every open connection was lost silently', async () => {
    const { proxy, accepting, receiver, handled } = await behindProxy()
    // Then no statement is running, and its three connections are open.
    await sleep(300)
    await Promise.all([receiver.inbox.stats(), receiver.inbox.stats(), receiver.inbox.stats()])
    proxy.silence()
    await accept(accepting, 'media')
    // A statement that goes through all events may take 30 s.
    await vi.waitFor(() => expect(handled).toHaveBeenCalledWith('media'), 25_000)
  })
})

describe.skipIf(!findPostgres())('a step on a dead letter', () => {
  const postgres = postgresTests()

  /** A dead letter, and a receiver behind a proxy that replays it. */
  async function withDeadLetter() {
    const { proxy, pool } = await postgres.throughProxy()
    const receiver = postgres.receiver({ pool, listen: false, timeoutMs: 5_000 }, { retry: { attempts: 1 } })
    receiver.onAny(() => {
      throw new Error('no')
    })
    await receiver.ready()
    await accept(receiver, 'media')
    const { deadLetters } = receiver.inbox
    await vi.waitFor(async () => expect(await deadLetters.list()).toHaveLength(1))
    const key = (await deadLetters.list())[0]?.key ?? ''
    return { proxy, receiver, replay: async () => deadLetters.replay(key) }
  }

  test('whose answer was lost does not say that it found nothing', async () => {
    const { proxy, replay } = await withDeadLetter()
    const sent = proxy.delay('AS next, id')
    const replayed = replay()
    replayed.catch(() => {})
    const carryOut = await sent
    proxy.mute()
    await carryOut()
    await proxy.breakFor(20)
    await expect(replayed).rejects.toMatchObject({ code: 'unavailable' })
  })

  test('that keeps an unreadable delivery is repeated when its connection breaks', async () => {
    const { proxy, receiver } = await withDeadLetter()
    const sent = proxy.delay('::bytea')
    const delivered = deliver(receiver, 'no JSON')
    await sent
    await proxy.breakFor(20)
    expect((await delivered).status).toBe(400)
    expect(await receiver.inbox.deadLetters.list()).toHaveLength(2)
  })

  test('waits until Postgres is back', async () => {
    const { replay } = await withDeadLetter()
    await postgres.server.stop('SIGINT')
    const replayed = replay()
    replayed.catch(() => {})
    await sleep(200)
    await postgres.server.restart()
    expect(await replayed).toBe(true)
  })
})

describe.skipIf(!findPostgres())('openInboxDatabase', () => {
  const postgres = postgresTests()

  test('rejects when its connection is cut off while it looks for the tables', async () => {
    await postgres.receiver({ handles: false }).ready()
    const { proxy, pool } = await postgres.throughProxy()
    // Connected, so that the next answer that is lost is the one about the tables.
    await pool.query('SELECT 1')
    proxy.mute()
    const opened = openInboxDatabase({ pool, schema: postgres.schema })
    await sleep(100)
    await Promise.all([expect(opened).rejects.toMatchObject({ code: 'unavailable' }), proxy.breakFor(20)])
  })
})
