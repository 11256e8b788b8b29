import type { Redis } from 'ioredis'
import { expect, test, vi } from 'vitest'
import { RedisClock } from '../../../src/inbox/bullmq/clock.ts'

/** Makes the client of a Redis whose clock is ours; each answer is read so late (ms). */
function redisAnswering(...lateMs: number[]) {
  const time = vi.fn(async () => {
    const now = Date.now()
    await new Promise((resolve) => setTimeout(resolve, lateMs.shift() ?? 0))
    return [Math.floor(now / 1_000), (now % 1_000) * 1_000]
  })
  const client = { status: 'ready', on: () => client, once: (_: string, end: () => void) => void end(), time }
  return { client: client as unknown as Redis, time }
}

test('takes the time from the answer that was read soonest, since a late one would make deadlines early', async () => {
  vi.useFakeTimers({ now: 1_772_366_400_000 })
  const { client, time } = redisAnswering(1_000, 0, 400)
  const clock = new RedisClock(client, undefined)
  const synced = clock.sync()
  await vi.advanceTimersByTimeAsync(2_000)
  await synced
  expect(time).toHaveBeenCalledTimes(2)
  expect(Math.abs(clock.aheadMs)).toBeLessThanOrEqual(1)
  vi.useRealTimers()
})

test('asks at most three times, and takes the best answer', async () => {
  vi.useFakeTimers({ now: 1_772_366_400_000 })
  const { client, time } = redisAnswering(900, 100, 700, 0)
  const clock = new RedisClock(client, undefined)
  const synced = clock.sync()
  await vi.advanceTimersByTimeAsync(5_000)
  await synced
  expect(time).toHaveBeenCalledTimes(3)
  expect(clock.aheadMs).toBe(50)
  vi.useRealTimers()
})
