import { describe, expect, test, vi } from 'vitest'
import { bullmqInbox } from '../../../src/inbox/bullmq.ts'
import { createReceiver, unverified } from '../../../src/index.ts'
import { inboxContract } from '../../contract/suites/inbox.ts'
import { installedVersion } from '../../support/peers.ts'
import { findRedis } from '../../support/redis/find-redis.ts'
import { redisTests } from '../../support/redis/redis-tests.ts'
import { silent } from '../../support/silent.ts'

vi.mock('bullmq', () => import('bullmq-oldest'))
vi.mock('ioredis', () => import('ioredis-oldest'))

describe.skipIf(!findRedis())('bullmqInbox with the oldest BullMQ and ioredis that it takes', () => {
  const redis = redisTests()
  const definition = () => bullmqInbox({ connection: redis.server.url, queue: `oldest ${crypto.randomUUID()}` })

  test('runs the oldest BullMQ', async () => {
    const inbox = createReceiver({ verify: unverified(), inbox: definition(), logger: silent }).inbox
    await inbox.stats()
    // BullMQ writes it into its queue.
    const [meta = ''] = await vi.waitUntil(async () => {
      const found = await redis.client.keys('bull:oldest *:meta')
      return found.length > 0 && found
    })
    expect(await redis.client.hget(meta, 'version')).toContain(installedVersion('bullmq-oldest'))
    await inbox.close()
  })

  inboxContract(
    () => ({ inbox: definition() }),
    { test, expect },
    { ordered: false, reads: true, keepsUnreadable: true, expects: true, pauses: true },
  )
})
