import { expect, test } from 'vitest'
import { createReceiver, memoryInbox, urlToken } from '../../../src/index.ts'
import { openTelemetry } from '../../../src/operate/telemetry/index.ts'
import { deliver, samplePayload, signWithUrlToken } from '../../../src/testing/index.ts'
import { silent } from '../../support/silent.ts'
import { startTracing } from './tracing.ts'

const { collector, exported, exportSpans, exportMetrics } = await startTracing()

test('nothing that is secret or personal is exported, from any delivery', async () => {
  const secret = 'SECRET-of-the-url'
  const keys: string[] = []
  const receiver = createReceiver({
    verify: urlToken({ secret }),
    inbox: memoryInbox(),
    logger: silent,
    retry: { attempts: 2, baseMs: 1 },
    telemetry: openTelemetry(),
  }).on('encoding.finished', ({ key }, { attempt }) => {
    keys.push(key)
    if (attempt === 1) throw new Error('broken')
  })
  const headers = { authorization: 'Basic SECRET-basic', cookie: 'SECRET-cookie', 'x-signature': 'SECRET-signature' }
  const sign = signWithUrlToken({ secret })
  const payload = samplePayload('encoding.finished', {
    title: 'SECRET-title {{$env}} <script>',
    user_id: 'SECRET-user',
    status: 'SECRET-status',
    qualities: 'SECRET-quality',
  })
  const url = '/SECRET-path?user=SECRET-query'
  await deliver(receiver, JSON.stringify({ ...payload, extra: 'SECRET-field' }), { sign, url, headers })
  await deliver(receiver, payload, { sign, url, headers })
  await deliver(receiver, payload, { url: `${url}&token=SECRET-guess`, headers })
  for (const body of [
    '{"type":"SECRET-type","media_id":"a-film"}',
    '{"type":"encoding.finished","media_id":{"SECRET-id":1}}',
    '{"SECRET-json":',
    '"SECRET-text"',
    'SECRET-no-json',
    '{"type":5,"title":"SECRET-malformed"}',
  ])
    await deliver(receiver, body, { sign, url, headers })

  await exported('receive', 9)
  await exported('process', 2)
  await receiver.close()
  await exportSpans()
  await exportMetrics()
  const everything = collector.bodies.join('\n')
  expect(everything).toContain('malformed')
  expect(everything).not.toContain('SECRET')
  for (const key of keys) expect(everything).not.toContain(key)
})
