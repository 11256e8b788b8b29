import { createHmac } from 'node:crypto'
import { describe, expect, test } from 'vitest'
import {
  basicAuth,
  headerToken,
  hmacSignature,
  standardWebhooks,
  timestampedSignature,
  unverified,
  urlToken,
  type Verifier,
} from '../../src/index.ts'
import {
  type Draft,
  type Signer,
  signWithBasicAuth,
  signWithHeaderToken,
  signWithHmac,
  signWithStandardWebhooks,
  signWithTimestampedSignature,
  signWithUrlToken,
} from '../../src/testing/index.ts'

const body = new TextEncoder().encode('{"type":"encoding.finished"}')
const draft: Draft = { url: '/hook?a=1', headers: { 'content-type': 'application/json' }, body }
const now = () => 1_700_000_000_999

const secret = ['bmV3', 'b2xk']
const hmac = { secret, header: 'X-Signature', timestamp: { header: 'X-Timestamp' }, now }
const header = { secret, header: 'X-Token', prefix: 'Bearer ' }
const basic = { username: 'media', password: secret }

const signers: [name: string, sign: Signer, verifierOf: (secret: string) => Verifier][] = [
  ['signWithUrlToken', signWithUrlToken({ secret }), (secret) => urlToken({ secret })],
  ['signWithHeaderToken', signWithHeaderToken(header), (secret) => headerToken({ ...header, secret })],
  ['signWithBasicAuth', signWithBasicAuth(basic), (password) => basicAuth({ ...basic, password })],
  ['signWithHmac', signWithHmac(hmac), (secret) => hmacSignature({ ...hmac, secret })],
  [
    'signWithStandardWebhooks',
    signWithStandardWebhooks({ secret, now }),
    (secret) => standardWebhooks({ secret, now }),
  ],
  [
    'signWithTimestampedSignature',
    signWithTimestampedSignature({ secret, header: 'X-Signature', now }),
    (secret) => timestampedSignature({ secret, header: 'x-signature', now }),
  ],
]

describe.each(signers)('%s', (_, sign, verifierOf) => {
  const verifies = async (verifier: Verifier) => {
    const { url, headers, body } = await sign(draft)
    return (await verifier.verify({ url, headers: new Headers(headers), body })).verified
  }

  test('signs with the first of several secrets, as a sender does', async () => {
    expect(await verifies(verifierOf('bmV3'))).toBe(true)
    expect(await verifies(verifierOf('b2xk'))).toBe(false)
  })

  test('keeps the body, the header fields and the rest of the URL, and does not change the draft', async () => {
    const before = JSON.stringify(draft)
    const signed = await sign(draft)
    expect(signed.body).toBe(body)
    expect(signed.headers).toMatchObject(draft.headers)
    expect(signed.url).toMatch(/^\/hook\?a=1/)
    expect(JSON.stringify(draft)).toBe(before)
  })
})

describe('the signers', () => {
  test('write what the sender writes', async () => {
    expect((await signWithUrlToken({ secret: 'a b' })(draft)).url).toBe('/hook?a=1&token=a%20b')
    expect((await signWithUrlToken({ secret: 'a/b', in: 'path' })(draft)).url).toBe('/hook/a%2Fb?a=1')
    expect((await signWithUrlToken({ secret: 's', parameter: 'key' })({ ...draft, url: '/' })).url).toBe('/?key=s')
    expect((await signWithHeaderToken(header)(draft)).headers['X-Token']).toBe('Bearer bmV3')
    const { authorization = '' } = (await signWithBasicAuth({ username: 'media', password: 'pä:ss' })(draft)).headers
    expect(Buffer.from(authorization.replace('Basic ', ''), 'base64').toString()).toBe('media:pä:ss')
  })

  test.each([
    ['/hook?token=old', '/hook?token=s3'],
    ['/hook?a=1&token=old&b=%7E&token=older#top', '/hook?a=1&token=s3&b=%7E#top'],
    ['/hook?tok%65n=old&b', '/hook?token=s3&b'],
    ['/hook?a=b?c=d', '/hook?a=b?c=d&token=s3'],
    ['/hook?a=b?token=c', '/hook?a=b?token=c&token=s3'],
    ['/hook??token=old', '/hook?token=s3'],
    ['/hook?a&?token=b', '/hook?a&?token=b&token=s3'],
    ['/hook?', '/hook?token=s3'],
    ['/hook#a?token=b', '/hook?token=s3#a?token=b'],
    ['https://example.com/hook?x&token=old', 'https://example.com/hook?x&token=s3'],
  ])('put one token into the URL %s', async (url, signed) => {
    const { headers } = draft
    expect((await signWithUrlToken({ secret: 's3' })({ ...draft, url })).url).toBe(signed)
    const delivery = { url: signed, headers: new Headers(headers), body }
    expect(await urlToken({ secret: 's3' }).verify(delivery)).toEqual({ verified: true })
  })

  test.each([
    ['/hook/a%2Fb?a=b?c', '/hook/a%2Fb?a=b?c'],
    ['/hook/old#top', '/hook/a%2Fb#top'],
    ['/hook/other', '/hook/other/a%2Fb'],
    ['/hook/%', '/hook/%/a%2Fb'],
  ])('put one token at the end of the path of %s', async (url, signed) => {
    const sign = signWithUrlToken({ secret: ['a/b', 'old'], in: 'path' })
    expect((await sign({ ...draft, url })).url).toBe(signed)
  })

  test('replace a header field of the same name', async () => {
    const old = { ...draft, headers: { 'x-token': 'old', 'X-SIGNATURE': 'old', Authorization: 'old' } }
    expect(new Headers((await signWithHeaderToken(header)(old)).headers).get('x-token')).toBe('Bearer bmV3')
    expect(new Headers((await signWithHmac(hmac)(old)).headers).get('x-signature')).toMatch(/^[0-9a-f]{64}$/)
    expect(new Headers((await signWithBasicAuth(basic)(old)).headers).get('authorization')).toMatch(/^Basic \S+$/)
  })

  test('write the time of their clock in whole seconds', async () => {
    const { headers } = await signWithHmac(hmac)(draft)
    expect(headers['X-Timestamp']).toBe('1700000000')
    const signature = createHmac('sha256', 'bmV3').update('1700000000.').update(body).digest('hex')
    expect(headers['X-Signature']).toBe(signature)
    expect((await signWithStandardWebhooks({ secret, now })(draft)).headers['webhook-timestamp']).toBe('1700000000')
  })

  test('write the given id', async () => {
    const { headers } = await signWithStandardWebhooks({ secret, id: 'msg_7' })(draft)
    expect(headers['webhook-id']).toBe('msg_7')
    expect((await signWithStandardWebhooks({ secret })(draft)).headers['webhook-id']).toMatch(/^msg_/)
  })

  test('reject a secret that no verifier accepts', () => {
    expect(() => signWithHmac({ ...hmac, secret: '' })).toThrow(expect.objectContaining({ code: 'invalid_option' }))
    expect(() => signWithUrlToken({ secret: 's\n' })).toThrow(expect.objectContaining({ code: 'invalid_option' }))
  })

  test('are not needed for unverified', async () => {
    expect(await unverified().verify({ ...draft, headers: new Headers() })).toEqual({ verified: true })
  })
})
