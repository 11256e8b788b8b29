import { metrics } from '@opentelemetry/api'
import { MeterProvider } from '@opentelemetry/sdk-metrics'
import { InMemorySpanExporter, NodeTracerProvider, SimpleSpanProcessor } from '@opentelemetry/sdk-trace-node'
import { afterAll, expect, test, vi } from 'vitest'
import { createReceiver, unverified, WebhookError } from '../../../src/index.ts'
import { openTelemetry } from '../../../src/operate/telemetry/index.ts'
import { deliver, samplePayload } from '../../../src/testing/index.ts'
import { silent } from '../../support/silent.ts'
import { untyped } from '../../support/untyped.ts'
import { Collector } from './collector.ts'
import { meterTo } from './sdk.ts'
import { tracedReceiver } from './tracing.ts'

// No SDK is registered in this file until a test does.

const collector = await Collector.start()
afterAll(() => collector.close())

test.each([
  [{ receiver: '' }, 'receiver'],
  [{ receiver: 5 }, 'receiver'],
  [{ attributes: {} }, 'attributes'],
  [{ tracerProvider: {} }, 'tracerProvider'],
  [{ meterProvider: {} }, 'meterProvider'],
  [{ name: 'misspelt' }, 'there is no option name'],
])('the options %o are invalid', (options, message) => {
  const make = () => openTelemetry(untyped(options))
  expect(make).toThrow(WebhookError)
  expect(make).toThrow(message)
})

test('it serves one receiver', () => {
  const telemetry = openTelemetry()
  tracedReceiver({ telemetry })
  expect(() => createReceiver({ verify: unverified(), logger: silent, telemetry })).toThrow('used by another receiver')
})

test('without an SDK a delivery is accepted and handled, and no trace is stored', async () => {
  const receiver = tracedReceiver({ retry: { attempts: 1 } }).on('encoding.finished', () => {
    throw new Error('broken')
  })
  const { status, handled } = await deliver(receiver, samplePayload('encoding.finished'))
  await handled
  expect(status).toBe(200)
  const [dead] = await receiver.inbox.deadLetters.list()
  expect(dead?.failures).toHaveLength(1)
  expect(dead?.trace).toBeUndefined()
})

test('a provider of your own is used instead of the global one', async () => {
  const exporter = new InMemorySpanExporter()
  const tracerProvider = new NodeTracerProvider({ spanProcessors: [new SimpleSpanProcessor(exporter)] })
  const { meterProvider, exportMetrics } = meterTo(collector.url)
  const receiver = tracedReceiver({ telemetry: openTelemetry({ tracerProvider, meterProvider }) })
  receiver.on('encoding.finished', () => {})
  await (await deliver(receiver, samplePayload('encoding.finished'))).handled
  await vi.waitFor(() =>
    expect(exporter.getFinishedSpans().map(({ name }) => name)).toEqual(
      expect.arrayContaining(['receive encoding.finished', 'process encoding.finished']),
    ),
  )
  await exportMetrics()
  expect([...collector.metrics.keys()]).toContain('messaging.client.consumed.messages')
  await Promise.all([tracerProvider.shutdown(), meterProvider.shutdown()])
})

test('an SDK that starts after the receiver also gets its metrics', async () => {
  const receiver = tracedReceiver().on('encoding.finished', () => {})
  await deliver(receiver, samplePayload('encoding.finished'))
  const { meterProvider, exportMetrics } = meterTo(collector.url)
  metrics.setGlobalMeterProvider(meterProvider)
  collector.clear()
  await deliver(receiver, samplePayload('encoding.finished', { media_id: 'another' }))
  await exportMetrics()
  const names = [...collector.metrics.keys()]
  expect(names).toContain('messaging.client.consumed.messages')
  expect(names).toContain('media_webhooks.inbox.events')
  await meterProvider.shutdown()
})

test('a meter provider that was replaced asks the inbox for its numbers no more', async () => {
  metrics.disable()
  const first = meterTo(collector.url)
  metrics.setGlobalMeterProvider(first.meterProvider)
  const receiver = tracedReceiver()
  const stats = vi.spyOn(receiver.inbox, 'stats')
  metrics.disable()
  metrics.setGlobalMeterProvider(new MeterProvider())
  await deliver(receiver, samplePayload('encoding.finished'))
  await first.exportMetrics()
  expect(stats).not.toHaveBeenCalled()
  await first.meterProvider.shutdown()
})
