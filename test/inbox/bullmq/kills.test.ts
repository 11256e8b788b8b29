import { describe, expect, test } from 'vitest'
import { findRedis } from '../../redis/find-redis.ts'
import { RedisServer } from '../../redis/redis-server.ts'
import { killRun } from './kill-run.ts'

const concurrency = 16

describe.skipIf(!findRedis())('bullmqInbox', () => {
  test('loses no acknowledged event while receivers are killed', async () => {
    const server = await RedisServer.start()
    try {
      const report = await killRun(server, 4)
      console.info('bullmqInbox under kill -9:', report)
      expect(report.acknowledged).toBeGreaterThan(100)
      expect(report).toMatchObject({ lost: 0, deadLetters: 0 })
      // Only the events that ran in a killed process.
      expect(report.handledAgain).toBeLessThanOrEqual(report.kills * concurrency)
    } finally {
      await server.remove()
    }
  }, 120_000)
})
