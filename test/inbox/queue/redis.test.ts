import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { redisStore } from '../../../src/idempotency/redis.ts'
import { clients } from '../../support/redis/clients.ts'
import { findRedis } from '../../support/redis/find-redis.ts'
import { RedisServer } from '../../support/redis/redis-server.ts'
import { messageOf, queueProcess } from './queue-process.ts'

describe.skipIf(!findRedis())('over Redis', () => {
  let server: RedisServer
  const ends: (() => void)[] = []
  beforeAll(async () => {
    server = await RedisServer.start()
  })
  afterAll(async () => {
    for (const end of ends) end()
    await server?.remove()
  })

  /** A consumer with a connection of its own. Its handler `b` throws as often as it is told. */
  async function consumer(runs: string[], failures = 0) {
    const { client, end } = await clients.ioredis(server)
    ends.push(end)
    const { receiver } = queueProcess({ store: redisStore({ client }) })
    let left = failures
    receiver.on('encoding.finished', ({ mediaId }) => void runs.push(`a ${mediaId}`), { name: 'a' })
    receiver.on(
      'encoding.finished',
      ({ mediaId }) => {
        if (left-- > 0) throw new Error('no disk')
        runs.push(`b ${mediaId}`)
      },
      { name: 'b' },
    )
    return receiver
  }

  test('each of 20 events is handled once by two consumers that both get all of them, twice', async () => {
    const runs: string[] = []
    const consumers = [await consumer(runs), await consumer(runs)]
    const messages = await Promise.all(Array.from({ length: 20 }, (_, number) => messageOf({ media_id: `${number}` })))
    const results = await Promise.all(
      [...messages, ...messages].flatMap((message) => consumers.map((receiver) => receiver.handle(message))),
    )
    expect(results.every(({ status }) => status === 'done' || status === 'retry')).toBe(true)
    expect(runs.toSorted()).toEqual(messages.flatMap(({ mediaId }) => [`a ${mediaId}`, `b ${mediaId}`]).toSorted())
    for (const message of messages) expect(await consumers[0]?.handle(message)).toEqual({ status: 'done' })
  })

  test('a handler that has succeeded does not run again in another process', async () => {
    const runs: string[] = []
    const [one, other] = [await consumer(runs, 1), await consumer(runs)]
    const message = await messageOf({ media_id: 'a film' })
    expect((await one.handle(message)).status).toBe('retry')
    expect(await other.handle(message, { attempt: 2 })).toEqual({ status: 'done' })
    expect(runs).toEqual(['a a film', 'b a film'])
  })

  test('an outage leaves the message to the queue', async () => {
    const runs: string[] = []
    const receiver = await consumer(runs)
    const message = await messageOf({ media_id: 'an outage' })
    await server.stop()
    expect((await receiver.handle(message)).status).toBe('retry')
    await server.restart()
    await expect.poll(() => receiver.handle(message)).toEqual({ status: 'done' })
    expect(runs).toEqual(['a an outage', 'b an outage'])
  })
})
