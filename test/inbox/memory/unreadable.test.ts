import { describe, expect, onTestFinished, test } from 'vitest'
import { memoryInbox, type ReceiverOptions } from '../../../src/index.ts'
import { deliver, samplePayload } from '../../../src/testing/index.ts'
import { receiverWith } from '../../receiver/listening-receiver.ts'
import { until } from '../../support/inbox.ts'
import { recordingLogger } from '../../support/recording-logger.ts'
import { checkUnreadable, future, opened, upgraded, url } from '../unreadable.suite.ts'

async function open(options: Partial<ReceiverOptions>) {
  const receiver = receiverWith({ inbox: memoryInbox(), ...options })
  onTestFinished(async () => void (await receiver.close({ timeoutMs: 1 })))
  return receiver
}

const futureOf = (mediaId: string) => future.replace('"m1"', `"${mediaId}"`)
const bodyOf = (text: string) => expect.objectContaining({ body: new TextEncoder().encode(text) })

checkUnreadable(open)

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

  test('are listed among the events, newest first, and are not events themselves', async () => {
    const receiver = await open({ retry: { attempts: 1 } })
    receiver.onAny(() => Promise.reject(new Error('the handler fails')))
    const { deadLetters, events } = receiver.inbox
    const nextMillisecond = async () => {
      const now = Date.now()
      await until(async () => Date.now() > now)
    }
    await deliver(receiver, futureOf('first'))
    await nextMillisecond()
    await deliver(receiver, samplePayload('encoding.finished', { media_id: 'second' }))
    await until(async () => (await deadLetters.list()).length === 2)
    await nextMillisecond()
    await deliver(receiver, futureOf('third'))
    const [third, second, first] = await deadLetters.list()
    expect([third?.unreadable, second?.event?.mediaId, first?.unreadable]).toEqual([
      bodyOf(futureOf('third')),
      'second',
      bodyOf(futureOf('first')),
    ])
    expect(await deadLetters.list({ limit: 1, offset: 1 })).toEqual([second])
    expect((await events?.list())?.events.map(({ mediaId }) => mediaId)).toEqual(['second'])
    expect(await events?.get(first?.key ?? '')).toBeUndefined()
    expect(await receiver.inbox.history?.('first')).toEqual([])
  })

  test('stay as they were sent when the application writes into its buffer later', async () => {
    const receiver = await open({})
    const buffer = new TextEncoder().encode(future)
    await deliver(receiver, buffer)
    buffer.fill(0)
    expect((await receiver.inbox.deadLetters.list())[0]?.unreadable).toEqual(bodyOf(future))
  })

  test('stay as they first came when they are sent again', async () => {
    const receiver = await open({})
    await deliver(receiver, future)
    const [first] = await receiver.inbox.deadLetters.list()
    await deliver(receiver, future)
    const kept = await receiver.inbox.deadLetters.list()
    expect(kept).toHaveLength(1)
    expect(kept[0]).toBe(first)
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

  test('are replayed all at a time', async () => {
    const { receiver, deadLetters, handled } = await opened(open)
    for (const id of ['m1', 'm2']) await deliver(receiver, futureOf(id), { url })
    expect(await upgraded(async () => deadLetters.replayAll?.())).toMatchObject({ total: 2, replayed: 2, kept: 0 })
    await until(async () => handled.length === 2)
    expect((await receiver.inbox.stats()).deadLetters).toBe(0)
  })
})
