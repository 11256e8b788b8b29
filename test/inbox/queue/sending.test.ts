import { AsyncLocalStorage } from 'node:async_hooks'
import { afterEach, describe, expect, test, vi } from 'vitest'
import { type QueueMessage, queueInbox } from '../../../src/inbox/queue.ts'
import { lruStore } from '../../../src/index.ts'
import { deliver, samplePayload } from '../../../src/testing/index.ts'
import { eventOf } from '../../support/inbox.ts'
import { untyped } from '../../support/untyped.ts'
import { messageOf, queueProcess } from './queue-process.ts'

afterEach(() => {
  vi.useRealTimers()
})

const handlers = { 'encoding.finished': () => {} }
const invalid = (message: string) => expect.objectContaining({ code: 'invalid_option', message })

test('`send` runs in the context of its delivery, and what it adds comes back: a trace can travel with the message', async () => {
  const traces = new AsyncLocalStorage<string>()
  const sent: object[] = []
  const send = (message: QueueMessage) => void sent.push({ ...message, trace: traces.getStore() })
  const { receiver } = queueProcess({ send, receiver: { handlers } })
  await traces.run('a-trace', () => deliver(receiver, samplePayload('encoding.finished')))
  expect(sent).toMatchObject([{ trace: 'a-trace' }])
  expect(await receiver.handle(JSON.stringify(sent[0]))).toEqual({ status: 'done' })
})

describe('the acknowledgement', () => {
  test('is 200 only once `send` has resolved', async () => {
    let stored = () => {}
    const sending = new Promise<void>((resolve) => {
      stored = resolve
    })
    const send = vi.fn(() => sending)
    const { receiver } = queueProcess({ send, receiver: { handlers } })
    let status = 0
    const delivered = deliver(receiver, samplePayload('encoding.finished')).then((answer) => {
      status = answer.status
    })
    await vi.waitFor(() => expect(send).toHaveBeenCalledOnce())
    await new Promise((resolve) => setTimeout(resolve, 5))
    expect(status).toBe(0)
    stored()
    await delivered
    expect(status).toBe(200)
  })

  test.each<[string, () => unknown]>([
    [
      'throws',
      () => {
        throw new Error('a queue that does not exist')
      },
    ],
    ['rejects', () => Promise.reject(new Error('a queue that does not exist'))],
  ])('is 503 when `send` %s, and the log names the reason', async (_, send) => {
    const { receiver, lines } = queueProcess({ send, receiver: { handlers } })
    const { status, outcome } = await deliver(receiver, samplePayload('encoding.finished'))
    expect([status, outcome]).toEqual([503, 'unavailable'])
    expect(
      JSON.stringify(lines, (_key, value) => (value instanceof Error ? `${value.message} ${value.cause}` : value)),
    ).toContain('a queue that does not exist')
  })

  test('is 503 when `send` does not answer in time, 2.5 s by default', async () => {
    vi.useFakeTimers()
    const send = vi.fn(() => new Promise(() => {}))
    const { receiver } = queueProcess({ send, receiver: { handlers } })
    const delivered = deliver(receiver, samplePayload('encoding.finished'))
    await vi.advanceTimersByTimeAsync(0)
    expect(send).toHaveBeenCalledOnce()
    await vi.advanceTimersByTimeAsync(2_499)
    expect(await Promise.race([delivered, 'pending'])).toBe('pending')
    await vi.advanceTimersByTimeAsync(1)
    expect((await delivered).outcome).toBe('unavailable')
  })

  test('is 503 once the receiver closes, and nothing is sent', async () => {
    const { receiver, sent } = queueProcess({ receiver: { handlers } })
    await receiver.close()
    expect((await deliver(receiver, samplePayload('encoding.finished'))).outcome).toBe('closing')
    await expect(receiver.inbox.accept(eventOf('one'))).rejects.toMatchObject({
      code: 'closing',
    })
    expect(sent).toEqual([])
  })

  test('of an event without a handler is `ignored`, and nothing is sent', async () => {
    const { receiver, sent } = queueProcess()
    expect((await deliver(receiver, samplePayload('encoding.finished'))).outcome).toBe('ignored')
    expect(sent).toEqual([])
  })
})

describe('a message', () => {
  test('is JSON with the event, its key and its media', async () => {
    const payload = samplePayload('encoding.finished', {
      media_id: 'a-film',
      emitted_at: '2026-03-01T12:00:00.123456789Z',
    })
    const { receiver, sent } = queueProcess({ receiver: { handlers } })
    await deliver(receiver, payload)
    const [message] = sent as [QueueMessage]
    expect(JSON.parse(JSON.stringify(message))).toEqual({
      version: 1,
      key: message.event.key,
      deduplicationId: expect.stringMatching(/^[0-9a-f]{64}$/),
      mediaId: 'a-film',
      group: expect.stringMatching(/^[0-9a-f]{64}$/),
      receivedAt: expect.stringMatching(/^\d{4}-\d\d-\d\dT/),
      event: expect.objectContaining({ type: 'encoding.finished', emittedAt: '2026-03-01T12:00:00.123Z', payload }),
    })
  })

  test('has the same ids whenever the event is delivered, and others for another event or media', async () => {
    const [first, again, other] = await Promise.all([
      messageOf({ media_id: 'a-film' }),
      messageOf({ media_id: 'a-film' }),
      messageOf({ media_id: 'another' }),
    ])
    expect([again.deduplicationId, again.group]).toEqual([first.deduplicationId, first.group])
    expect([other.deduplicationId, other.group]).not.toEqual([first.deduplicationId, first.group])
    expect(other.group).not.toBe(first.group)
    expect(first.group).not.toBe(first.deduplicationId)
  })

  test('has ids that any queue takes, with any media id', async () => {
    const { group, deduplicationId } = await messageOf({ media_id: `${'🎬 '.repeat(200)}\ud800` })
    expect(group).toMatch(/^[0-9a-f]{64}$/)
    expect(deduplicationId).toMatch(/^[0-9a-f]{64}$/)
  })
})

describe('queueInbox', () => {
  const send = () => {}
  const store = lruStore()

  test.each<[string, object, string]>([
    ['no `send`', { store }, 'queueInbox: send must be a function'],
    [
      'no store',
      { send },
      'queueInbox: store must be redisStore(), the result of defineStore() or, for one process, lruStore()',
    ],
    [
      'a copy of a store',
      { send, store: { ...store } },
      'queueInbox: store must be redisStore(), the result of defineStore() or, for one process, lruStore()',
    ],
    [
      'an unknown option',
      { send, store, lease: 1 },
      'queueInbox: there is no option lease; there are send, store, leaseMs, sendTimeoutMs',
    ],
    [
      'a lease that is not a number',
      { send, store, leaseMs: 'long' },
      'queueInbox: leaseMs must be a whole number from 1 to 2147483647',
    ],
    [
      'no time to send',
      { send, store, sendTimeoutMs: 0 },
      'queueInbox: sendTimeoutMs must be a whole number from 1 to 2147483647',
    ],
  ])('cannot be made with %s', (_, options, message) => {
    expect(() => queueInbox(untyped(options))).toThrow(invalid(message))
  })

  test('cannot be made without options', () => {
    expect(() => queueInbox(untyped(undefined))).toThrow(invalid('queueInbox: send must be a function'))
  })

  test('says that it hands events over, and whether its keys are known to one process only', () => {
    expect(queueInbox({ send, store })).toMatchObject({ storage: 'handed-over', localKeys: true })
    expect(queueProcess().receiver.setup.inbox.name).toBe('queueInbox')
  })

  test('does not take ack `handled`', () => {
    const options = { receiver: { ack: 'handled' as const } }
    expect(() => queueProcess(options)).toThrow(
      invalid("createReceiver: ack 'handled' works with the memory inbox only, not with queueInbox"),
    )
  })

  test('knows no dead letters, since the queue keeps them', async () => {
    const { deadLetters } = queueProcess().receiver.inbox
    expect(await deadLetters.list()).toEqual([])
    expect(await deadLetters.get('any')).toBe(undefined)
    expect(await deadLetters.replay('any')).toBe(false)
    expect(await deadLetters.discard('any')).toBe(false)
  })
})
