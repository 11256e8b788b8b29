import { describe, expect, test, vi } from 'vitest'
import type { QueueMessage } from '../../../src/inbox/queue.ts'
import type { Telemetry } from '../../../src/index.ts'
import { deliver, samplePayload } from '../../../src/testing/index.ts'
import { messageOf, queueProcess } from './queue-process.ts'

const carrier = { traceparent: '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01', tracestate: 'a=1' }

/** A telemetry whose deliveries all belong to one trace, and that notes what it is told. */
function fakeTelemetry() {
  const startRun = vi.fn<Telemetry['startRun']>(() => ({ within: (call) => call(), end() {} }))
  const measured = vi.fn<Telemetry['measured']>()
  const startDelivery = () => ({ within: <Result>(receive: () => Result) => receive(), trace: carrier, end() {} })
  const telemetry: Telemetry = { opened() {}, closing() {}, startDelivery, startRun, measured }
  return { telemetry, startRun, measured }
}
const handlers = { 'encoding.finished': () => {} }

/** Sends an event with a receiver that is traced, and returns its message. */
async function tracedMessage(telemetry = fakeTelemetry().telemetry): Promise<QueueMessage> {
  const { receiver, sent } = queueProcess({ receiver: { handlers, telemetry } })
  await deliver(receiver, samplePayload('encoding.finished'))
  return sent[0] as QueueMessage
}

describe('the trace of a delivery', () => {
  test('travels in the message, and reaches the handlers in another process', async () => {
    const message = await tracedMessage()
    expect(message.trace).toEqual(carrier)
    const { telemetry, startRun } = fakeTelemetry()
    const { receiver } = queueProcess({ receiver: { handlers, telemetry } })
    expect(await receiver.handle(JSON.stringify(message))).toEqual({ status: 'done' })
    expect(startRun.mock.calls.map(([{ accepted }]) => accepted.trace)).toEqual([carrier])
  })

  test('is not in the message of a receiver that is not traced', async () => {
    expect(await messageOf()).not.toHaveProperty('trace')
  })

  test.each([
    ['the message has none', undefined],
    ['it is not an object', 'traceparent'],
    ['it is null', null],
    ['one of its values is not a text', { traceparent: 7 }],
  ])('is left out if %s', async (_, trace) => {
    const { telemetry, startRun } = fakeTelemetry()
    const { receiver } = queueProcess({ receiver: { handlers, telemetry } })
    const message = { ...(await messageOf()), trace }
    expect(await receiver.handle(JSON.stringify(message))).toEqual({ status: 'done' })
    expect(startRun.mock.calls.map(([{ accepted }]) => accepted.trace)).toEqual([undefined])
  })
})

describe('queueInbox measures', () => {
  test('how long the queue takes for a message, and the store for a claim', async () => {
    const { telemetry, measured } = fakeTelemetry()
    const message = await tracedMessage(telemetry)
    expect(measured.mock.calls).toEqual([['send', expect.any(Number), undefined]])
    const { receiver } = queueProcess({ receiver: { handlers, telemetry } })
    await receiver.handle(message)
    expect(measured.mock.calls.slice(1)).toEqual([['claim', expect.any(Number), undefined]])
  })

  test('also a queue that fails', async () => {
    const { telemetry, measured } = fakeTelemetry()
    const down = new Error('the queue is down')
    const { receiver } = queueProcess({ send: () => Promise.reject(down), receiver: { handlers, telemetry } })
    expect((await deliver(receiver, samplePayload('encoding.finished'))).status).toBe(503)
    expect(measured.mock.calls).toEqual([['send', expect.any(Number), down]])
  })
})
