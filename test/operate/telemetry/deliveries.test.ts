import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { context, propagation, SpanKind, trace } from '@opentelemetry/api'
import { expect, onTestFinished, test } from 'vitest'
import { nodeHandler } from '../../../adapters/node.ts'
import { type QueueMessage, queueInbox } from '../../../src/inbox/queue.ts'
import { lruStore, urlToken } from '../../../src/index.ts'
import { openTelemetry } from '../../../src/operate/telemetry/index.ts'
import { deliver, encodePayload, samplePayload } from '../../../src/testing/index.ts'
import { mux, ready } from '../../events/senders.ts'
import { signalled } from '../../support/signalled.ts'
import { revokedProxy, untyped } from '../../support/untyped.ts'
import type { Exported } from './collector.ts'
import { deliverInServer } from './deliver-in-server.ts'
import { startTracing, tracedReceiver } from './tracing.ts'

const { exported } = await startTracing()

/** The outcome of a delivery, as its span shows it. */
const told = ({ name, attributes, error }: Exported) => ({
  name,
  outcome: attributes['media_webhooks.outcome'],
  status: attributes['http.response.status_code'],
  errorType: attributes['error.type'],
  error,
})

test('a duplicate has a span of its own, and no handler', async () => {
  const receiver = tracedReceiver().on('encoding.finished', () => {})
  await deliverInServer(receiver)
  await deliverInServer(receiver)
  const spans = await exported('receive', 2)
  expect(spans.map(told).map(({ outcome }) => outcome)).toEqual(['accepted', 'duplicate'])
  expect(new Set(spans.map(({ traceId }) => traceId)).size).toBe(2)
  expect(await exported('process')).toHaveLength(1)
})

test('a rejected delivery has the code of its rejection, and the reason for the operator', async () => {
  const receiver = tracedReceiver({ verify: urlToken({ secret: 'a secret' }) }).on('encoding.finished', () => {})
  await deliver(receiver, samplePayload('encoding.finished'), { url: '/?token=wrong' })
  const [span] = await exported('receive')
  expect(told(span as Exported)).toEqual({
    name: 'receive',
    outcome: 'unauthorized',
    status: 401,
    errorType: 'unauthorized',
    error: expect.stringContaining('token'),
  })
})

test('a delivery that cannot be parsed is known by its rejection only', async () => {
  await deliver(tracedReceiver(), '{"type":')
  const [span] = await exported('receive')
  expect(told(span as Exported)).toMatchObject({ name: 'receive', errorType: 'malformed', status: 400 })
})

test('the types of a sender of your own are destinations', async () => {
  const receiver = tracedReceiver({ sender: mux } as never).onAny(() => {}, { name: 'audit' })
  for (const type of ['video.asset.ready', 'video.asset.deleted'])
    await deliver(receiver, JSON.stringify(ready({ type, id: type })))
  const names = [...(await exported('process', 2)), ...(await exported('receive', 2))].map(({ name }) => name)
  expect(names.toSorted()).toEqual([
    'process _OTHER',
    'process video.asset.ready',
    'receive _OTHER',
    'receive video.asset.ready',
  ])
})

test('a type that the sender has made up is not a destination', async () => {
  const receiver = tracedReceiver().onAny(() => {}, { name: 'audit' })
  await deliver(receiver, '{"type":"made.up","media_id":"a-film"}')
  const [run] = await exported('process')
  const [delivery] = await exported('receive')
  expect([run?.name, delivery?.name]).toEqual(['process _OTHER', 'receive _OTHER'])
  expect(run?.attributes['messaging.destination.name']).toBe('_OTHER')
})

test('a delivery that no handler wants says so', async () => {
  await deliver(tracedReceiver(), samplePayload('encoding.finished'))
  const [span] = await exported('receive')
  expect(told(span as Exported)).toMatchObject({
    name: 'receive encoding.finished',
    outcome: 'ignored',
    error: undefined,
  })
})

test('with ack "handled" the handler ends within the span of the delivery', async () => {
  const receiver = tracedReceiver({ ack: 'handled' }).on('encoding.finished', () => {
    throw new Error('broken')
  })
  await deliverInServer(receiver)
  const [delivery] = await exported('receive')
  const [run] = await exported('process')
  expect(run).toMatchObject({ parent: delivery?.spanId, attributes: { 'media_webhooks.outcome': 'failed' } })
  expect(told(delivery as Exported)).toMatchObject({
    outcome: 'handler_failed',
    status: 500,
    error: 'a handler failed',
  })
})

test('over HTTP, the span of the server that takes the request is the parent', async () => {
  const receiver = tracedReceiver().on('encoding.finished', () => {})
  const handle = nodeHandler(receiver)
  const server = createServer((request, response) => {
    const parent = propagation.extract(context.active(), request.headers)
    const span = trace.getTracer('http').startSpan('POST', { kind: SpanKind.SERVER }, parent)
    response.on('finish', () => span.end())
    context.with(trace.setSpan(parent, span), () => handle(request, response))
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  onTestFinished(() => {
    server.closeAllConnections()
    server.close()
  })
  const traceId = '0af7651916cd43dd8448eb211c80319c'
  const { status } = await fetch(`http://127.0.0.1:${(server.address() as AddressInfo).port}/`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', traceparent: `00-${traceId}-b7ad6b7169203331-01` },
    body: encodePayload(samplePayload('encoding.finished')) as Uint8Array<ArrayBuffer>,
  })
  expect(status).toBe(200)
  const [run] = await exported('process')
  const [delivery] = await exported('receive')
  const [post] = await exported('POST')
  expect([post, delivery, run].map((span) => [span?.traceId, span?.parent])).toEqual([
    [traceId, 'b7ad6b7169203331'],
    [traceId, post?.spanId],
    [traceId, delivery?.spanId],
  ])
})

test('a run of a handler that began in the context of another delivery belongs to its own', async () => {
  const { promise: released, resolve: release } = signalled()
  const order: string[] = []
  const receiver = tracedReceiver().on('encoding.finished', async ({ status }) => {
    if (status === 'first') await released
    order.push(status ?? '')
  })
  // Events of one media item are handled one after another: the end of the first starts the second.
  await deliverInServer(receiver, { status: 'first' })
  await deliverInServer(receiver, { status: 'second' })
  release()
  const runs = await exported('process', 2)
  const deliveries = await exported('receive', 2)
  expect(order).toEqual(['first', 'second'])
  expect(runs.map(({ parent }) => parent)).toEqual(deliveries.map(({ spanId }) => spanId))
})

test.each([
  ['sent with a trace', true],
  ['sent before there were traces', false],
])('the run of a message that was %s shows the span of the consumer', async (_, hasTrace) => {
  const messages: QueueMessage[] = []
  const send = (message: QueueMessage) => void messages.push(message)
  const receiver = tracedReceiver({ inbox: queueInbox({ send, store: lruStore() }) }).on('encoding.finished', () => {})
  await deliverInServer(receiver)
  const { trace: carrier, ...message } = JSON.parse(JSON.stringify(messages[0]))
  expect(carrier).toEqual({ traceparent: expect.any(String) })
  await trace.getTracer('queue').startActiveSpan('consume', async (span) => {
    await receiver.handle(hasTrace ? { ...message, trace: carrier } : message)
    span.end()
  })
  const [run] = await exported('process')
  const [delivery] = await exported('receive')
  const [consumer] = await exported('consume')
  const { spanId = '' } = delivery ?? {}
  expect(run).toMatchObject(
    hasTrace
      ? { traceId: delivery?.traceId, parent: spanId, links: [spanId, consumer?.spanId] }
      : { traceId: consumer?.traceId, parent: consumer?.spanId, links: [] },
  )
})

test('a handler that fails after its signal was aborted is stopped, not failed', async () => {
  const { promise: started, resolve: start } = signalled()
  const receiver = tracedReceiver().on('encoding.finished', (_, { signal }) => {
    start()
    return new Promise((_, reject) => signal.addEventListener('abort', () => reject(signal.reason)))
  })
  await deliverInServer(receiver)
  await started
  await receiver.close({ timeoutMs: 1 })
  const [run] = await exported('process')
  expect(run?.attributes).toMatchObject({ 'media_webhooks.outcome': 'stopped', 'error.type': 'closing' })
})

test('a handler that takes too long ends with a timeout', async () => {
  const receiver = tracedReceiver({ handlerTimeoutMs: 10, retry: { attempts: 1 } })
  receiver.on('encoding.finished', () => new Promise(() => {}))
  await deliverInServer(receiver)
  const [run] = await exported('process')
  expect(run?.attributes).toMatchObject({ 'media_webhooks.outcome': 'dead-lettered', 'error.type': 'timeout' })
})

test('attributes of the user are on both spans, and replace none of ours', async () => {
  const telemetry = openTelemetry({
    receiver: 'uploads',
    attributes: ({ userId = '' }) => ({ 'app.tenant': userId, 'messaging.system': 'mine' }),
  })
  const receiver = tracedReceiver({ telemetry }).on('encoding.finished', () => {})
  await deliverInServer(receiver, { user_id: 'a tenant' })
  const spans = [...(await exported('receive')), ...(await exported('process'))]
  const ours = { 'messaging.system': 'media_webhooks', 'media_webhooks.receiver': 'uploads', 'app.tenant': 'a tenant' }
  expect(spans.map(({ attributes }) => attributes)).toMatchObject([ours, ours])
})

const unreadable = {
  get tenant(): string {
    throw new Error('broken')
  },
}

test.each([
  [
    'throw',
    () => {
      throw new Error('broken')
    },
  ],
  ['reject', () => untyped(Promise.reject(new Error('broken')))],
  ['are none', () => untyped(undefined)],
  ['cannot be read', () => unreadable],
  ['are a revoked proxy', () => revokedProxy()],
])('attributes of the user that %s leave the spans as they are', async (_, attributes) => {
  const receiver = tracedReceiver({ telemetry: openTelemetry({ attributes }) }).on('encoding.finished', () => {})
  expect(await deliverInServer(receiver)).toMatchObject({ status: 200 })
  const [run] = await exported('process')
  expect(run?.attributes['media_webhooks.outcome']).toBe('handled')
})
