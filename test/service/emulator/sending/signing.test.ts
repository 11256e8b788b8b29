import { describe, expect, test } from 'vitest'
import { nodeHandler } from '../../../../adapters/node.ts'
import { createReceiver, type MediaEvent } from '../../../../src/index.ts'
import { type SigningOptions, verifierFor } from '../../../../src/service/emulator/sending/signing.ts'
import { smallInbox } from '../../../receiver/listening-receiver.ts'
import { silent } from '../../../support/silent.ts'
import { listen, listenAndAnswer, outboxWith, outcomesOf, payloadOf } from './targets.ts'

const secret = 'geheim-5e1d/+?&='
const schemes: readonly SigningOptions[] = [
  { scheme: 'url-token', secret },
  { scheme: 'url-token', secret, parameter: 'access key' },
  { scheme: 'url-token', secret: 'geheim-5e1d', in: 'path' },
  { scheme: 'header-token', secret, header: 'x-webhook-token' },
  { scheme: 'header-token', secret, header: 'authorization', prefix: 'Bearer ' },
  { scheme: 'basic-auth', username: 'media', password: 'pässwörd:1' },
  { scheme: 'hmac-signature', secret, header: 'x-signature' },
  { scheme: 'hmac-signature', secret, header: 'x-signature', algorithm: 'sha512', encoding: 'base64' },
  { scheme: 'hmac-signature', secret, header: 'x-signature', prefix: 'sha256=', timestampHeader: 'x-timestamp' },
  {
    ...{ scheme: 'hmac-signature', secret, header: 'x-slack-signature', prefix: 'v0=' },
    ...{ timestampHeader: 'x-slack-request-timestamp', signed: 'v0:{timestamp}:{body}' },
  },
  { scheme: 'hmac-signature', secret, header: 'x-signature', signed: '{url}{body}' },
  { scheme: 'timestamped-signature', secret, header: 'mux-signature' },
  { scheme: 'timestamped-signature', secret, header: 'webhook-signature', time: 'time', signature: 'sig1' },
  { scheme: 'standard-webhooks', secret: `whsec_${Buffer.from(secret.repeat(2)).toString('base64')}`, headers: 'svix' },
  { scheme: 'standard-webhooks', secret: `whsec_${Buffer.from(secret.repeat(2)).toString('base64')}` },
]

describe.each(schemes)('what is signed by $scheme', (sign) => {
  test.each(['flat', 'envelope'] as const)('is accepted by its verifier, in the %s format', async (format) => {
    const handled: MediaEvent[] = []
    const receiver = createReceiver({ verify: verifierFor(sign), logger: silent, inbox: smallInbox() })
    receiver.onAny((event) => void handled.push(event))
    const { url } = await listen(nodeHandler(receiver))
    const outbox = outboxWith()
    const { id } = outbox.send({ id: 'w1', url: `${url}?from=media` }, payloadOf('m1'), { sign, format })
    await outbox.idle()
    await receiver.close()

    expect(outcomesOf(outbox.get(id))).toEqual([200])
    expect(handled).toMatchObject([{ mediaId: 'm1', format }])
  })
})

test('a signature in the Authorization header replaces the credentials of the URL', async () => {
  const { url, received } = await listenAndAnswer(200)
  const outbox = outboxWith()
  const sign: SigningOptions = { scheme: 'header-token', secret, header: 'authorization', prefix: 'Bearer ' }
  const { id } = outbox.send({ id: 'w1', url: url.replace('//', '//user:password@') }, payloadOf('m1'), { sign })
  await outbox.idle()
  expect(received[0]?.request.headers.authorization).toBe(`Bearer ${secret}`)
  const [delivery] = outbox.get(id)?.deliveries ?? []
  expect(Object.keys(delivery?.request.headers ?? {})).toEqual(['User-Agent', 'Content-Type', 'Authorization'])
})

test('an event has the same id in retries, for every webhook and when it is repeated', async () => {
  const { url, received } = await listenAndAnswer(500, 200)
  const outbox = outboxWith()
  const sign = schemes.at(-1) as SigningOptions
  outbox.sendToAll(
    ['w1', 'w2'].map((id) => ({ id, url, behaviour: { sign } })),
    payloadOf('m1'),
  )
  await outbox.idle()
  outbox.send({ id: 'w1', url }, payloadOf('m1'), { sign })
  await outbox.idle()
  outbox.send({ id: 'w1', url }, payloadOf('m2'), { sign })
  await outbox.idle()

  const ids = received.map(({ request }) => request.headers['webhook-id'])
  expect(ids).toHaveLength(5)
  expect(new Set(ids.slice(0, 4)).size).toBe(1)
  expect(ids[4]).not.toBe(ids[0])
})

test('an unusable secret is rejected before anything is sent', () => {
  const outbox = outboxWith()
  const sign: SigningOptions = { scheme: 'hmac-signature', secret: '', header: 'x-signature' }
  expect(() => outbox.send({ id: 'w1', url: 'http://127.0.0.1:1' }, payloadOf('m1'), { sign })).toThrow('is empty')
  expect(outbox.list()).toEqual([])
})
