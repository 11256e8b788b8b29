import { describe, expect, test } from 'vitest'
import { findRedis } from '../../support/redis/find-redis.ts'
import { RedisServer } from '../../support/redis/redis-server.ts'
import { testSeed } from '../../support/test-seed.ts'
import { reportText } from '../kill/judge.ts'
import { killRun } from './kill/run.ts'

describe.skipIf(!findRedis())('bullmqInbox', () => {
  // `npm run soak -- bullmq` kills more often.
  test('loses no acknowledged event by kills, and handles twice only what a kill cut off', async () => {
    const server = await RedisServer.start()
    const seed = testSeed()
    try {
      const report = await killRun(server, 3, seed)
      console.info(`bullmqInbox: ${reportText(report)} (seed ${seed})`)
      expect(report.faults, `seed ${seed}`).toEqual([])
    } finally {
      await server.remove()
    }
  })
})
