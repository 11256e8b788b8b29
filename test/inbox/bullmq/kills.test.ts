import { describe, expect, test } from 'vitest'
import { findRedis } from '../../support/redis/find-redis.ts'
import { RedisServer } from '../../support/redis/redis-server.ts'
import { testSeed } from '../../support/test-seed.ts'
import { reportText } from '../kill/judge.ts'
import { expectingRun } from './kill/expecting-run.ts'
import { killRun } from './kill/run.ts'

describe.skipIf(!findRedis())('bullmqInbox', () => {
  // `npm run soak -- bullmq` kills more often.
  test.each([
    ['loses no acknowledged event by kills, and handles twice only what a kill cut off', killRun, 3],
    [
      'reports what is overdue in spite of kills, once unless a kill cut it off, and nothing that was ended',
      expectingRun,
      5,
    ],
  ])('%s', async (_, run, kills) => {
    const server = await RedisServer.start()
    const seed = testSeed()
    try {
      const report = await run(server, kills, seed)
      console.info(`bullmqInbox: ${reportText(report)} (seed ${seed})`)
      expect(report.faults, `seed ${seed}`).toEqual([])
    } finally {
      await server.remove()
    }
  })
})
