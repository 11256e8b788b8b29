import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { bullmqInbox } from '../../src/inbox/bullmq.ts'
import { findRedis } from '../support/redis/find-redis.ts'
import { RedisServer } from '../support/redis/redis-server.ts'
import { inboxContract } from './suites/inbox.ts'

describe.skipIf(!findRedis())('bullmqInbox', () => {
  let server: RedisServer
  let subjects = 0
  beforeAll(async () => {
    server = await RedisServer.start()
  })
  afterAll(() => server?.remove())

  const subject = () => ({ inbox: bullmqInbox({ connection: server.url, queue: `subject ${++subjects}` }) })
  inboxContract(
    subject,
    { test, expect },
    { ordered: false, reads: true, keepsUnreadable: true, expects: true, pauses: true },
  )
})
