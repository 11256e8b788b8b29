import { describe, expect, test, vi } from 'vitest'
import {
  createReceiver,
  type EncodingFinishedEvent,
  type HandlerContext,
  lruStore,
  unverified,
} from '../../../src/index.ts'
import { messageOf, queueProcess } from './queue-process.ts'

const failing = () => {
  throw new Error('no disk')
}

/** A process that handles `encoding.finished`, and its handler. */
function consumer(options: Parameters<typeof queueProcess>[0] = {}) {
  const handler = vi.fn((_event: EncodingFinishedEvent, _context: HandlerContext): unknown => undefined)
  return { handler, ...queueProcess({ ...options, receiver: { handlers: { 'encoding.finished': handler } } }) }
}

describe('a message', () => {
  const encode = (text: string) => new TextEncoder().encode(text)

  test.each<[string, (json: string) => unknown]>([
    ['the object', (json) => JSON.parse(json)],
    ['JSON text', (json) => json],
    ['bytes', encode],
    ['a buffer of Node', (json) => Buffer.from(json)],
    ['an ArrayBuffer', (json) => encode(json).slice().buffer],
  ])('can be %s', async (_, form) => {
    const { receiver, handler } = consumer()
    const message = await messageOf({ media_id: 'ein Film 🎬' })
    expect(await receiver.handle(form(JSON.stringify(message)))).toEqual({ status: 'done' })
    const [[event, context]] = handler.mock.calls as [[EncodingFinishedEvent, HandlerContext]]
    expect(event).toEqual({ ...message.event, emittedAt: new Date(message.event.emittedAt as string) })
    expect(event.mediaId).toBe('ein Film 🎬')
    expect(context.key).toBe(message.key)
    expect(context.receivedAt).toEqual(new Date(message.receivedAt))
    expect(context.attempt).toBe(1)
  })

  test('of an event without a time has none afterwards', async () => {
    const { receiver, handler } = consumer()
    const message = await messageOf()
    const { emittedAt: _, ...event } = message.event
    await receiver.handle({ ...message, event })
    expect(handler.mock.calls[0]?.[0].emittedAt).toBe(undefined)
  })

  test.each<[string, (message: Awaited<ReturnType<typeof messageOf>>) => unknown]>([
    ['undefined', () => undefined],
    ['null', () => null],
    ['a number', () => 1],
    ['text that is not JSON', () => 'the secret'],
    ['JSON null', () => 'null'],
    ['bytes that are not JSON', () => new Uint8Array([255, 0])],
    ['of another version', (message) => ({ ...message, version: 2 })],
    ['without an event', ({ event: _, ...message }) => message],
    ['with an event without a key', (message) => ({ ...message, event: { ...message.event, key: undefined } })],
    ['with an event without a media item', (message) => ({ ...message, event: { ...message.event, mediaId: 7 } })],
    ['without its time', ({ receivedAt: _, ...message }) => message],
    ['with an invalid time', (message) => ({ ...message, receivedAt: 'the secret' })],
    [
      'with an emission that has no time',
      (message) => ({ ...message, event: { ...message.event, emittedAt: 'the secret' } }),
    ],
  ])('that is %s is dead, and its content is not logged', async (_, make) => {
    const { receiver, handler, lines } = consumer()
    const text = 'not a message from queueInbox'
    expect(await receiver.handle(make(await messageOf({ media_id: 'the secret' })))).toEqual({
      status: 'dead',
      failures: [{ handler: 'none', message: text }],
    })
    expect(handler).not.toHaveBeenCalled()
    expect(lines).toEqual([{ level: 'error', details: {}, message: text }])
  })
})

describe('an event', () => {
  test('that was handled is done, and is not handled again: not in this process, and not in another', async () => {
    const store = lruStore()
    const [one, other] = [consumer({ store }), consumer({ store })]
    const message = await messageOf()
    expect(await one.receiver.handle(message)).toEqual({ status: 'done' })
    expect(await one.receiver.handle(message)).toEqual({ status: 'done' })
    expect(await other.receiver.handle(JSON.stringify(message), { attempt: 3 })).toEqual({ status: 'done' })
    expect(one.handler).toHaveBeenCalledOnce()
    expect(other.handler).not.toHaveBeenCalled()
  })

  test('that failed is delivered again after the pause of the schedule, and is then handled', async () => {
    const { receiver, handler } = consumer()
    handler.mockImplementationOnce(failing)
    const message = await messageOf()
    const result = await receiver.handle(message)
    expect(result).toMatchObject({ status: 'retry', delayMs: expect.any(Number) })
    expect(result.status === 'retry' && result.delayMs).toBeLessThanOrEqual(1_000)
    expect(await receiver.handle(message, { attempt: 2 })).toEqual({ status: 'done' })
    expect(handler.mock.calls.map(([, { attempt }]) => attempt)).toEqual([1, 2])
  })

  test('is dead once the queue has delivered it as often as `retry.attempts` says, and can be delivered again', async () => {
    const { receiver, handler } = consumer()
    handler.mockImplementation(failing)
    const message = await messageOf()
    for (const attempt of [1, 2, 3, 4]) expect((await receiver.handle(message, { attempt })).status).toBe('retry')
    expect(await receiver.handle(message, { attempt: 5 })).toMatchObject({
      status: 'dead',
      failures: [{ handler: expect.any(String), message: 'Error: no disk' }],
    })
    // The message comes from the queue's dead letters, with a fresh count.
    handler.mockImplementation(() => undefined)
    expect(await receiver.handle(message)).toEqual({ status: 'done' })
  })

  test('of a queue that does not count is never dead', async () => {
    const { receiver, handler } = consumer()
    handler.mockImplementation(failing)
    const message = await messageOf()
    for (let i = 0; i < 8; i++) expect((await receiver.handle(message)).status).toBe('retry')
  })

  test('that no handler takes any more is not lost', async () => {
    const { receiver } = queueProcess()
    const message = await messageOf()
    expect((await receiver.handle(message)).status).toBe('retry')
    expect(await receiver.handle(message, { attempt: 5 })).toMatchObject({
      status: 'dead',
      failures: [{ handler: 'none', message: 'no handler is registered for its type' }],
    })
  })
})

describe('receiver.handle', () => {
  test.each([0, -1, 1.5, Number.NaN, '2', null])(
    'rejects with the attempt %j, which would end the retries',
    async (attempt) => {
      const { receiver, handler } = consumer()
      await expect(receiver.handle(await messageOf(), { attempt: attempt as number })).rejects.toMatchObject({
        code: 'invalid_option',
        message: 'receiver.handle: attempt must be a whole number from 1 to 2147483647',
      })
      expect(handler).not.toHaveBeenCalled()
    },
  )

  test('rejects when the inbox has no queue', async () => {
    const receiver = createReceiver({ verify: unverified() })
    await expect(receiver.handle(await messageOf())).rejects.toMatchObject({
      code: 'invalid_option',
      message: 'receiver.handle needs queueInbox',
    })
  })
})
