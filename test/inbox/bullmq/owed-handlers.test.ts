import { setTimeout as sleep } from 'node:timers/promises'
import { beforeEach, describe, expect, onTestFinished, test, vi } from 'vitest'
import { type BullmqInboxOptions, bullmqInbox } from '../../../src/inbox/bullmq.ts'
import { createReceiver, type ReceiverOptions, unverified } from '../../../src/index.ts'
import { deliver, samplePayload } from '../../../src/testing/index.ts'
import { until } from '../../support/inbox.ts'
import { recordingLogger } from '../../support/recording-logger.ts'
import { findRedis } from '../../support/redis/find-redis.ts'
import { redisTests } from '../../support/redis/redis-tests.ts'
import { owedHandlers } from '../owed-handlers.suite.ts'

describe.skipIf(!findRedis())('bullmqInbox', () => {
  const redis = redisTests()
  let queue: string
  beforeEach(() => {
    queue = `queue ${crypto.randomUUID()}`
  })

  const open = (options: Omit<BullmqInboxOptions, 'connection'>, rest: Partial<ReceiverOptions> = {}) => {
    const inbox = bullmqInbox({ connection: redis.server.url, queue, ...options })
    const receiver = createReceiver({ verify: unverified(), ...rest, inbox })
    onTestFinished(async () => void (await receiver.close({ timeoutMs: 200 })))
    return receiver
  }
  owedHandlers(async (options, rest) => open(options, rest))

  test('leaves an event to a busy process again and again: soon at first, and later each time', async () => {
    const front = open({ handles: false })
      .onAny(() => {}, { name: 'here' })
      .onAny(() => {}, { name: 'elsewhere' })
    const accept = (mediaId: string) => deliver(front, samplePayload('encoding.finished', { media_id: mediaId }))
    let isBusy = false
    open({ concurrency: 1 }).onAny(
      () => {
        isBusy = true
        return new Promise(() => {})
      },
      { name: 'elsewhere' },
    )
    await accept('its own')
    await until(async () => isBusy)
    const releasedAt: number[] = []
    const attempt = () => void releasedAt.push(Date.now())
    open({}, { hooks: { attempt } }).onAny(() => {}, { name: 'here' })
    await accept('left')
    await until(async () => releasedAt.length >= 5)
    const pauses = releasedAt.slice(1).map((at, index) => at - (releasedAt[index] as number))
    for (const [index, least] of [20, 40, 80, 160].entries()) expect(pauses[index]).toBeGreaterThanOrEqual(least - 1)
    const [first = 0, , , fourth = 0] = releasedAt
    expect(fourth - first).toBeLessThan(2_000)
  })

  test('are not kept from the busy process that has them by an idle one that lacks them', async () => {
    const count = 200
    const ran: string[] = []
    const attempts: string[] = []
    const hooks = { attempt: ({ outcome }: { outcome: string }) => void attempts.push(outcome) }
    const busy = open({ concurrency: 4 })
      .onAny(() => {}, { name: 'old' })
      .onAny(
        async ({ key }) => {
          await sleep(20)
          ran.push(key)
        },
        { name: 'new' },
      )
    open({ concurrency: 2 }, { hooks }).onAny(() => {}, { name: 'old' })
    await Promise.all(
      Array.from({ length: count }, (_, index) =>
        deliver(busy, samplePayload('encoding.finished', { media_id: `media ${index}` })),
      ),
    )
    await until(async () => ran.length === count)
    // Each event once, for its own handler, and a few more in ever longer intervals.
    expect(attempts.length).toBeLessThan(count + 60)
  })

  test('are released by the clock of Redis, and a clock that is ahead is reported', async () => {
    const now = Date.now
    const clock = vi.spyOn(Date, 'now').mockImplementation(() => now() + 60_000)
    onTestFinished(() => clock.mockRestore())
    const { logger, lines } = recordingLogger('warn')
    const front = open({ handles: false })
      .onAny(() => {}, { name: 'here' })
      .onAny(() => {}, { name: 'elsewhere' })
    open({ concurrency: 1 }).onAny(() => new Promise(() => {}), { name: 'elsewhere' })
    open({}, { logger }).onAny(() => {}, { name: 'here' })
    await until(async () => lines.some(({ message }) => message.includes('ms ahead of Redis')))
    for (const index of [1, 2, 3]) await deliver(front, samplePayload('encoding.finished', { media_id: `m${index}` }))
    const released = async () => (await redis.client.zrange(`bull:${queue}:delayed`, '0', '-1', 'WITHSCORES'))[1]
    let score: string | undefined
    await until(async () => {
      score = await released()
      return score !== undefined
    })
    expect(Number(score) / 4096).toBeLessThan(now() + 10_000)
  })
})
