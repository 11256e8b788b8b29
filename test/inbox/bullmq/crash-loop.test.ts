import { Redis } from 'ioredis'
import { describe, expect, onTestFinished, test } from 'vitest'
import { bullmqInbox } from '../../../src/inbox/bullmq.ts'
import { eventOf } from '../../support/inbox.ts'
import { handlesNothing, openWith } from '../../support/open-with.ts'
import { findRedis } from '../../support/redis/find-redis.ts'
import { RedisServer } from '../../support/redis/redis-server.ts'
import { ReceiverProcess } from './receiver-process.ts'

describe.skipIf(!findRedis())('bullmqInbox', () => {
  test('makes a dead letter of the event that crashes its process, and of none that runs beside it', async () => {
    const server = await RedisServer.start()
    onTestFinished(() => server.remove())
    const queue = 'crashing'
    const inbox = openWith(bullmqInbox({ connection: server.url, queue, handles: false }), handlesNothing)
    const harmless = Array.from({ length: 5 }, (_, i) => `harmless ${i}`)
    for (const key of ['culprit', ...harmless]) await inbox.accept(eventOf(key))

    const isOver = async () => {
      const { waiting, running, retrying } = await inbox.stats()
      return waiting + running + retrying === 0
    }
    let crashes = 0
    while (!(await isOver())) {
      const task = { redis: server.url, queue, handling: 'crashing', leaseMs: 300 } as const
      const receiver = await ReceiverProcess.start(task)
      await receiver.endsOr(isOver)
      if (receiver.hasEnded) crashes++
      await receiver.kill()
    }

    console.info(`bullmqInbox: ${crashes} crashes until the culprit was a dead letter`)
    const deadLetters = await inbox.deadLetters.list()
    expect(deadLetters.map(({ key }) => key)).toEqual(['culprit'])
    expect(deadLetters[0]?.failures).toEqual([
      { handler: 'none', message: 'the process crashed 11 times while handling it' },
    ])
    expect(crashes).toBe(11)
    const redis = new Redis(server.port)
    expect(Object.keys(await redis.hgetall('changes')).sort()).toEqual(harmless)
    redis.disconnect()
    await inbox.close()
  })
})
