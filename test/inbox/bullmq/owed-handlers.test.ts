import { beforeEach, describe, onTestFinished } from 'vitest'
import { bullmqInbox } from '../../../src/inbox/bullmq.ts'
import { createReceiver, unverified } from '../../../src/index.ts'
import { findRedis } from '../../support/redis/find-redis.ts'
import { redisTests } from '../../support/redis/redis-tests.ts'
import { owedHandlers } from '../owed-handlers.suite.ts'

describe.skipIf(!findRedis())('bullmqInbox', () => {
  const redis = redisTests()
  let queue: string
  beforeEach(() => {
    queue = `queue ${crypto.randomUUID()}`
  })

  owedHandlers(async (options, rest) => {
    const inbox = bullmqInbox({ connection: redis.server.url, queue, ...options })
    const receiver = createReceiver({ verify: unverified(), ...rest, inbox })
    onTestFinished(async () => void (await receiver.close({ timeoutMs: 200 })))
    return receiver
  })
})
