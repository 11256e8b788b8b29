import { beforeEach, describe, expect, onTestFinished, test } from 'vitest'
import { type BullmqInboxOptions, bullmqInbox } from '../../../src/inbox/bullmq.ts'
import { createReceiver, type ReceiverOptions, unverified } from '../../../src/index.ts'
import { deliver, samplePayload } from '../../../src/testing/index.ts'
import { until } from '../../support/inbox.ts'
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
})
