import { afterAll, beforeAll, describe, expect, onTestFinished, test, vi } from 'vitest'
import { bullmqInbox, openInboxQueue } from '../../../src/inbox/bullmq.ts'
import { eventOf, openInbox, until } from '../../support/inbox.ts'
import { findRedis } from '../../support/redis/find-redis.ts'
import { RedisServer } from '../../support/redis/redis-server.ts'
import { untyped } from '../../support/untyped.ts'

describe.skipIf(!findRedis())('openInboxQueue', () => {
  let server: RedisServer
  beforeAll(async () => {
    server = await RedisServer.start()
  })
  afterAll(() => server?.remove())

  /** Opens a queue with dead letters of these keys, and the inbox that handles its events. */
  const withDeadLetters = async (...keys: string[]) => {
    const queue = `queue ${crypto.randomUUID()}`
    const { inbox, calls } = openInbox(bullmqInbox({ connection: server.url, queue }))
    onTestFinished(async () => {
      calls.finishAll()
      await inbox.close({ timeoutMs: 1_000 })
    })
    for (const [index, key] of keys.entries()) {
      await inbox.accept(eventOf(key))
      ;(await calls.next()).finish({ status: 'dead', completed: [], failures: [{ handler: 'a', message: 'no' }] })
      await until(async () => (await inbox.stats()).deadLetters === index + 1)
    }
    const opened = await vi.waitFor(() => openInboxQueue({ connection: server.url, queue }))
    onTestFinished(() => opened.close())
    return { ...opened, inbox, calls }
  }

  test('lists all keys, the oldest first, and the newest dead letters first', async () => {
    const { deadLetters } = await withDeadLetters('one', 'two', 'three')
    expect(await deadLetters.keys()).toEqual(['one', 'two', 'three'])
    expect((await deadLetters.list({ limit: 1 })).map(({ key }) => key)).toEqual(['three'])
    expect((await deadLetters.list({ limit: 2, offset: 1 })).map(({ key }) => key)).toEqual(['two', 'one'])
  })

  test('replays many, and returns the keys that were dead letters', async () => {
    const { deadLetters, calls, stats } = await withDeadLetters('one', 'two', 'three')
    expect(await deadLetters.replayMany(['one', 'unknown', 'three'])).toEqual(['one', 'three'])
    const replayed = [(await calls.next()).event.key, (await calls.next()).event.key]
    expect(replayed.sort()).toEqual(['one', 'three'])
    expect(await stats()).toEqual({ waiting: 0, running: 2, retrying: 0, deadLetters: 1 })
    expect(await deadLetters.replayMany(['one', 'three'])).toEqual([])
  })

  test('discards many, and returns the keys that were dead letters', async () => {
    const { deadLetters, inbox } = await withDeadLetters('one', 'two', 'three')
    expect(await deadLetters.discardMany(['unknown', 'two', 'one'])).toEqual(['two', 'one'])
    expect(await deadLetters.keys()).toEqual(['three'])
    expect(await inbox.accept(eventOf('two'))).toBe('duplicate')
  })

  test('passes an unreadable delivery on to the receiver, which keeps it if it still cannot be parsed', async () => {
    const { deadLetters, inbox, stats } = await withDeadLetters()
    const body = new TextEncoder().encode('{')
    await inbox.keepUnreadable?.({ reason: 'not JSON', receivedAt: new Date(), eventId: undefined, body })
    const [before] = await deadLetters.list()
    expect(await deadLetters.replay(before?.key ?? '')).toBe(true)
    await until(
      async () => (await deadLetters.list())[0]?.failures[0]?.message === 'the delivery still cannot be parsed',
    )
    expect(await deadLetters.keys()).toEqual([before?.key])
    expect(await stats()).toEqual({ waiting: 0, running: 0, retrying: 0, deadLetters: 1 })
  })

  test('opens the queue of a process that only accepts, also with options for ioredis', async () => {
    const queue = `queue ${crypto.randomUUID()}`
    const { inbox } = openInbox(bullmqInbox({ connection: { port: server.port }, queue, handles: false }))
    onTestFinished(async () => void (await inbox.close()))
    // It is made by the process, and not by its first event.
    const opened = await vi.waitFor(() => openInboxQueue({ connection: { port: server.port }, queue }))
    onTestFinished(() => opened.close())
    await inbox.accept(eventOf('one'))
    const { receivedAt: oldestWaitingAt } = eventOf('one')
    expect(await opened.stats()).toEqual({ waiting: 1, running: 0, retrying: 0, deadLetters: 0, oldestWaitingAt })
  })

  test.each([
    [{ connection: untyped(null) }, 'connection'],
    [{ connection: untyped(6379) }, 'connection'],
    [{ queue: untyped(7) }, 'queue'],
    [{ queue: '' }, 'queue'],
    [{ queue: 'a:b' }, 'queue'],
    [{ other: true }, 'other'],
  ])('rejects wrong options: %o', async (options, named) => {
    await expect(openInboxQueue({ connection: server.url, ...options })).rejects.toMatchObject({
      code: 'invalid_option',
      message: expect.stringMatching(new RegExp(`^openInboxQueue: .*${named}`)),
    })
  })

  test('rejects if there is no such queue, or no Redis', async () => {
    await expect(openInboxQueue({ connection: server.url, queue: 'missing' })).rejects.toMatchObject({
      code: 'unavailable',
      message: expect.stringMatching(/^Redis has no queue missing of an inbox: start a receiver/),
    })
    expect(await server.command('KEYS', '*missing*')).toBe('')
    await expect(openInboxQueue({ connection: 'redis://127.0.0.1:1' })).rejects.toMatchObject({
      code: 'unavailable',
      message: expect.stringMatching(
        /^Redis cannot be used: connect ECONNREFUSED 127\.0\.0\.1:1 \(is the server running/,
      ),
      cause: expect.objectContaining({ code: 'ECONNREFUSED' }),
    })
  })
})
