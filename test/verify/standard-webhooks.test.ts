import fc from 'fast-check'
import { Webhook } from 'standardwebhooks'
import { describe, expect, test } from 'vitest'
import { createReceiver, standardWebhooks } from '../../src/index.ts'
import { deliver, makeDelivery, samplePayload, signWithStandardWebhooks } from '../../src/testing/index.ts'
import { body, deliveryWith, messageOfBuild, verdict } from './verdict.ts'

const secret = 'whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw'
const published = {
  'webhook-id': 'msg_p5jXN8AQM9LWM0D4loKWxJek',
  'webhook-timestamp': '1614265330',
  'webhook-signature': 'v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=',
}
const publishedBody = new TextEncoder().encode('{"test": 2432232314}')
const then = () => 1_614_265_330_000

const now = new Date()
const text = new TextDecoder().decode(body)
const valid = new Webhook(secret).sign('msg_1', now, text)
const fields = { 'webhook-id': 'msg_1', 'webhook-timestamp': String(Math.floor(now.getTime() / 1_000)) }
const signed = (signature: string) => deliveryWith({ ...fields, 'webhook-signature': signature })
const verifier = standardWebhooks({ secret })

describe('standardWebhooks', () => {
  test('verifies the published vector and returns its id', async () => {
    const delivery = { url: '/', headers: new Headers(published), body: publishedBody }
    const verification = await standardWebhooks({ secret, now: then }).verify(delivery)
    expect(verification).toEqual({ verified: true, eventId: published['webhook-id'] })
  })

  test.each([
    ['another id', { 'webhook-id': 'msg_other' }],
    ['another time', { 'webhook-timestamp': '1614265331' }],
    ['another signature', { 'webhook-signature': `v1,${'A'.repeat(43)}=` }],
  ])('does not verify the published vector with %s', async (_, changed) => {
    const headers = new Headers({ ...published, ...changed })
    const verification = await standardWebhooks({ secret, now: then }).verify({
      url: '/',
      headers,
      body: publishedBody,
    })
    expect(verification).toEqual({ verified: false, reason: 'no signature matches' })
  })

  test('verifies what its signer makes', async () => {
    const delivery = await makeDelivery(samplePayload('encoding.finished'), {
      sign: signWithStandardWebhooks({ secret }),
    })
    expect(await verdict(verifier, delivery)).toBe('verified')
  })

  test('agrees with the reference library, in both directions', async () => {
    const bytes = fc.uint8Array({ minLength: 1, maxLength: 64 })
    const id = fc.stringMatching(/^[\w-]{1,40}$/)
    await fc.assert(
      fc.asyncProperty(bytes, id, fc.json(), async (key, id, content) => {
        const secret = `whsec_${Buffer.from(key).toString('base64')}`
        const peer = new Webhook(secret)
        const signed = await signWithStandardWebhooks({ secret, id })({
          url: '/',
          headers: {},
          body: new TextEncoder().encode(content),
        })
        expect(signed.headers['webhook-signature']).toBe(
          peer.sign(id, new Date(Number(signed.headers['webhook-timestamp']) * 1_000), content),
        )
        expect(peer.verify(content, { ...signed.headers })).toEqual(JSON.parse(content))
        const verification = await standardWebhooks({ secret }).verify({
          ...signed,
          headers: new Headers(signed.headers),
        })
        expect(verification).toEqual({ verified: true, eventId: id })
      }),
    )
  })

  test('reads the headers of Svix, and then no others', async () => {
    const svix = standardWebhooks({ secret, headers: 'svix' })
    const delivery = await makeDelivery(samplePayload('encoding.finished'), {
      sign: signWithStandardWebhooks({ secret, headers: 'svix', id: 'msg_of_svix' }),
    })
    expect(delivery.headers.get('svix-id')).toBe('msg_of_svix')
    expect(await verdict(svix, delivery)).toBe('verified')
    expect(await verdict(verifier, delivery)).toMatch(/webhook-id, webhook-timestamp and webhook-signature is missing/)
    expect(await verdict(svix, signed(valid))).toMatch(/svix-id, svix-timestamp and svix-signature is missing/)
  })

  test('takes a secret without its prefix', async () => {
    expect(await verdict(standardWebhooks({ secret: secret.slice('whsec_'.length) }), signed(valid))).toBe('verified')
  })

  test('does not verify a body that changed', async () => {
    const altered = new TextEncoder().encode(text.replace('holiday', 'Holiday'))
    expect(await verdict(verifier, { ...signed(valid), body: altered })).toMatch(/no signature matches/)
  })

  test('verifies the old and the new secret during a rotation', async () => {
    const other = 'whsec_bmV3IHNlY3JldA=='
    expect(await verdict(standardWebhooks({ secret: [other, secret] }), signed(valid))).toBe('verified')
    expect(await verdict(standardWebhooks({ secret: [secret, other] }), signed(valid))).toBe('verified')
    expect(await verdict(standardWebhooks({ secret: other }), signed(valid))).toMatch(/no signature matches/)
  })

  const wrong = `v1,${'A'.repeat(43)}=`

  test.each([
    ['after a wrong one', `${wrong} ${valid}`],
    ['before a wrong one', `${valid} ${wrong}`],
    ['beside a future version', `v2,new-scheme v1a,asymmetric ${valid}`],
    ['as the last of 16', [...Array(15).fill(wrong), valid].join(' ')],
  ])('finds the signature %s', async (_, signature) => {
    expect(await verdict(verifier, signed(signature))).toBe('verified')
  })

  test.each([
    ['an empty header', ''],
    ['a signature without a version', valid.slice('v1,'.length)],
    ['only future versions', valid.replace('v1', 'v2')],
    ['an empty signature', 'v1,'],
    ['text that is not base64', 'v1,###='],
    ['a malformed signature beside the right one', `${valid} v1,###`],
    ['a header sent twice', `${valid}, ${valid}`],
    ['a header sent twice, once in a future version', `v1a,AAAA, ${valid}`],
    ['17 signatures', [...Array(16).fill(wrong), valid].join(' ')],
    ['an oversized header', `${valid} v2,${'x'.repeat(4_096)}`],
    ['a malformed version beside the right one', `${valid} v-1,AAAA`],
    ['a header sent twice', `${valid}, ${valid}`],
  ])('does not verify %s', async (_, signature) => {
    expect(await verdict(verifier, signed(signature))).toMatch(/malformed|missing/)
  })

  test.each(['webhook-id', 'webhook-timestamp', 'webhook-signature'])(
    'does not verify a delivery without %s',
    async (name) => {
      const delivery = signed(valid)
      ;(delivery.headers as Headers).delete(name)
      expect(await verdict(verifier, delivery)).toMatch(/missing/)
    },
  )

  test('does not verify an id that was sent twice, or an oversized one', async () => {
    const twice = signed(valid)
    ;(twice.headers as Headers).append('webhook-id', 'msg_1')
    expect(await verdict(verifier, twice)).toMatch(/no signature matches/)
    const id = 'm'.repeat(4_097)
    const oversized = { ...fields, 'webhook-id': id, 'webhook-signature': new Webhook(secret).sign(id, now, text) }
    expect(await verdict(verifier, deliveryWith(oversized))).toMatch(/too long/)
  })

  test.each(['whsec_', 'whsec_###', 'not base64!', 'whsec_YQ', 'whsec_-_-_'])(
    'cannot be built with the secret %s',
    (secret) => {
      const message = messageOfBuild(() => standardWebhooks({ secret }))
      expect(message).toMatch(/base64/)
      expect(message.replace('prefix whsec_', '')).not.toContain(secret)
    },
  )

  test.each([Number.NaN, 0, -300, Number.POSITIVE_INFINITY])(
    'cannot be built with a tolerance of %d',
    (toleranceSeconds) => {
      expect(messageOfBuild(() => standardWebhooks({ secret, toleranceSeconds }))).toMatch(
        /^standardWebhooks: toleranceSeconds/,
      )
    },
  )

  test('uses the webhook-id as the event key', async () => {
    const keys: string[] = []
    const receiver = createReceiver({
      verify: verifier,
      handlers: { 'encoding.finished': ({ key }) => void keys.push(key) },
    })
    const send = async (id: string, fields = {}) => {
      const sign = signWithStandardWebhooks({ secret, id })
      const { outcome, handled } = await deliver(receiver, samplePayload('encoding.finished', fields), { sign })
      await handled
      return outcome
    }
    expect(await send('msg_1')).toBe('accepted')
    expect(await send('msg_1', { title: 'other' })).toBe('duplicate')
    expect(await send('msg_2')).toBe('accepted')
    expect(keys).toEqual(['msg_1', 'msg_2'])
  })

  test('needs the exact bytes', () => expect(verifier.needsBytes).toBe(true))
})
