import { describe, expect, onTestFinished, test } from 'vitest'
import { memoryInbox, type ReceiverOptions } from '../../../src/index.ts'
import { deliver, samplePayload } from '../../../src/testing/index.ts'
import { receiverWith } from '../../receiver/listening-receiver.ts'
import { until } from '../../support/inbox.ts'
import { recordingLogger } from '../../support/recording-logger.ts'
import { future, opened, upgraded, url } from '../../support/unreadable.ts'

async function open(options: Partial<ReceiverOptions>) {
  const receiver = receiverWith({ inbox: memoryInbox(), ...options })
  onTestFinished(async () => void (await receiver.close({ timeoutMs: 1 })))
  return receiver
}

const futureOf = (mediaId: string) => future.replace('"m1"', `"${mediaId}"`)

describe('the unreadable deliveries of a memory inbox', () => {
  test('are the newest 100, beside the events, and a dropped one is logged without its body', async () => {
    const { logger, lines } = recordingLogger()
    const receiver = await open({ inbox: memoryInbox({ maxDeadLetters: 1 }), logger, retry: { attempts: 1 } })
    receiver.onAny(() => Promise.reject(new Error('the handler fails')))
    const { deadLetters } = receiver.inbox
    await deliver(receiver, samplePayload('encoding.finished', { media_id: 'event' }))
    await until(async () => (await deadLetters.list()).length === 1)
    await deliver(receiver, futureOf('oldest'))
    const oldest = (await deadLetters.list()).find(({ unreadable }) => unreadable)?.key
    for (let i = 1; i <= 100; i++) await deliver(receiver, futureOf(`m${i}`))
    const kept = await deadLetters.list({ limit: 1_000 })
    expect(kept).toHaveLength(101)
    expect(kept.filter(({ event }) => event).map(({ event }) => event?.mediaId)).toEqual(['event'])
    expect(await deadLetters.get(oldest ?? '')).toBeUndefined()
    const dropped = lines.filter(({ message }) => message === 'a dead letter was dropped to make room for a newer one')
    expect(dropped.map(({ details }) => details)).toEqual([{ key: oldest }])
  })

  test('stay when they are replayed while the inbox is full', async () => {
    const { receiver, deadLetters } = await opened(open, { inbox: memoryInbox({ concurrency: 1, maxWaiting: 1 }) })
    receiver.onAny((_, { signal }) => new Promise((_, reject) => signal.addEventListener('abort', reject)))
    for (const id of ['running', 'waiting']) {
      await deliver(receiver, samplePayload('encoding.finished', { media_id: id }), { url })
      if (id === 'running') await until(async () => (await receiver.inbox.stats()).running === 1)
    }
    await deliver(receiver, future, { url })
    const kept = await deadLetters.list()
    const replayed = upgraded(async () => deadLetters.replay(kept[0]?.key ?? ''))
    await expect(replayed).rejects.toMatchObject({ code: 'overloaded' })
    expect(await deadLetters.list()).toEqual(kept)
  })

  test('wait from their replay on, and not from their delivery', async () => {
    const { receiver, deadLetters } = await opened(open, { inbox: memoryInbox({ concurrency: 1 }) })
    receiver.onAny((_, { signal }) => new Promise((_, reject) => signal.addEventListener('abort', reject)))
    await deliver(receiver, future, { url })
    await deliver(receiver, samplePayload('encoding.finished', { media_id: 'running' }), { url })
    await until(async () => (await receiver.inbox.stats()).running === 1)
    const key = (await deadLetters.list())[0]?.key ?? ''
    const replayedAt = Date.now()
    await upgraded(async () => deadLetters.replay(key))
    const { oldestWaitingAt } = await receiver.inbox.stats()
    expect(oldestWaitingAt?.getTime()).toBeGreaterThanOrEqual(replayedAt)
  })
})
