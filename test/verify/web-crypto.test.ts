import { createHash } from 'node:crypto'
import { describe, expect, test, vi } from 'vitest'
import {
  anyOf,
  basicAuth,
  createReceiver,
  headerToken,
  hmacSignature,
  standardWebhooks,
  urlToken,
  type Verifier,
} from '../../src/index.ts'
import {
  deliver,
  makeDelivery,
  type Signer,
  samplePayload,
  signWithBasicAuth,
  signWithHeaderToken,
  signWithHmac,
  signWithStandardWebhooks,
  signWithUrlToken,
} from '../../src/testing/index.ts'
import { verdict } from './fixture.ts'

// The implementation that runtimes without node:crypto load.
vi.mock('#crypto', () => import('../../src/verify/crypto-web.ts'))

const secret = ['c2VjcmV0', 'b2xkIHNlY3JldA==']
const wrong = 'Z3Vlc3M='
const hmac = { header: 'x-signature', timestamp: { header: 'x-timestamp' } }

const schemes: [name: string, verifier: Verifier, sign: (secret: string) => Signer][] = [
  ['urlToken', urlToken({ secret }), (secret) => signWithUrlToken({ secret })],
  [
    'headerToken',
    headerToken({ secret, header: 'x-token' }),
    (secret) => signWithHeaderToken({ secret, header: 'x-token' }),
  ],
  [
    'basicAuth',
    basicAuth({ username: 'media', password: secret }),
    (password) => signWithBasicAuth({ username: 'media', password }),
  ],
  ['hmacSignature', hmacSignature({ secret, ...hmac }), (secret) => signWithHmac({ secret, ...hmac })],
  ['standardWebhooks', standardWebhooks({ secret }), (secret) => signWithStandardWebhooks({ secret })],
  [
    'anyOf',
    anyOf(urlToken({ secret: 'x' }), standardWebhooks({ secret })),
    (secret) => signWithStandardWebhooks({ secret }),
  ],
]

describe.each(schemes)('with WebCrypto, %s', (_, verifier, sign) => {
  const signed = (secret: string) => makeDelivery(samplePayload('encoding.finished'), { sign: sign(secret) })

  test('verifies each of its secrets', async () => {
    for (const each of secret) expect(await verdict(verifier, await signed(each))).toBe('verified')
  })

  test('does not verify another secret', async () => {
    expect(await verdict(verifier, await signed(wrong))).toMatch(/wrong|no signature matches/)
  })
})

test('with WebCrypto, long event keys get the same hash as with node:crypto', async () => {
  const keys: string[] = []
  const receiver = createReceiver({
    verify: urlToken({ secret }),
    handlers: { 'encoding.finished': ({ key }) => void keys.push(key) },
  })
  const sign = signWithUrlToken({ secret })
  const long = samplePayload('encoding.finished', { user_id: 'u'.repeat(300) })
  for (const payload of [long, samplePayload('encoding.finished', { emitted_at: '' })]) {
    await (await deliver(receiver, payload, { sign })).handled
  }
  expect((await deliver(receiver, long, { sign })).outcome).toBe('duplicate')
  const { type, media_id, user_id, emitted_at, qualities, status } = long
  const text = JSON.stringify([type, media_id, user_id, emitted_at, qualities, status])
  const hash = createHash('sha256').update(JSON.stringify(text)).digest('hex')
  expect(keys[0]).toBe(`sha256:${hash}`)
  expect(keys[1]).toMatch(/^sha256:[0-9a-f]{64}$/)
})
