import { describe, expect, test } from 'vitest'
import { createApi } from '../../../../src/service/emulator/api/app.ts'
import { account, credentials, keyPair, serveApi } from './served-api.ts'

const { publicKey, secretKey, accessToken } = credentials
const basic = (text: string) => `Basic ${Buffer.from(text).toString('base64')}`
const ownBasic = basic(`${publicKey}:${secretKey}`)
/** The headers that the official client sends with every request. */
const client = { accept: 'application/json, */*;q=0.8', 'av-origin-client': 'nodejs:1.0.0' }

describe('credentials', () => {
  test.each([
    ['the key pair', account],
    ['the access token', { authorization: `Bearer ${accessToken}` }],
    ['a scheme in other letters', { authorization: `bearer  ${accessToken}` }],
    ['the key pair as Basic authorization', { authorization: ownBasic }],
    ['all of the above that the official client sends for keys', { ...client, ...account, authorization: ownBasic }],
    [
      'an access token with empty keys, as the official client sends it',
      { ...client, ...keyPair('', ''), authorization: `Bearer ${accessToken}` },
    ],
    ['keys with an empty authorization', { ...client, ...account, authorization: '' }],
    ['both schemes, of one account', { ...account, authorization: `Bearer ${accessToken}` }],
  ])('are accepted: %s', async (_, headers) => {
    const { call } = await serveApi()
    expect((await call('POST', '/api_keys', { api_key_name: 'x' }, headers)).status).toBe(201)
  })

  const wrongPair = 'wrong public key or secret key'
  const wrongHeader = 'the Authorization header must be `Bearer <access token>` or `Basic base64(<public>:<secret>)`'
  const none = 'no credentials: send stream-public-key and stream-secret-key, or `Authorization: Bearer <access token>`'
  test.each([
    ['none', {}, none],
    ['the official client has none', { ...client, ...keyPair('', ''), authorization: '' }, none],
    ['a wrong token', { authorization: 'Bearer wrong' }, 'wrong access token'],
    ['the secret as token', { authorization: `Bearer ${secretKey}` }, 'wrong access token'],
    ['a wrong secret', keyPair(publicKey, 'wrong'), wrongPair],
    ['a wrong public key', keyPair('wrong', secretKey), wrongPair],
    ['the pair the wrong way round', keyPair(secretKey, publicKey), wrongPair],
    ['no secret', { 'stream-public-key': publicKey }, wrongPair],
    ['no public key', { 'stream-secret-key': secretKey }, wrongPair],
    ['a public key of no characters', keyPair('', secretKey), wrongPair],
    ['a wrong pair in Basic', { authorization: basic(`${publicKey}:wrong`) }, wrongPair],
    ['Basic without a colon', { authorization: basic(publicKey) }, wrongHeader],
    ['Basic of nothing', { authorization: 'Basic' }, wrongHeader],
    ['Bearer of nothing', { authorization: 'Bearer ' }, wrongHeader],
    ['another scheme', { authorization: `Digest ${accessToken}` }, wrongHeader],
    ['a token without a scheme', { authorization: accessToken }, wrongHeader],
    ['a good pair beside a wrong token', { ...account, authorization: 'Bearer wrong' }, 'wrong access token'],
    [
      'a good token beside a wrong pair',
      { ...keyPair(publicKey, 'wrong'), authorization: `Bearer ${accessToken}` },
      wrongPair,
    ],
  ])('are rejected with 401: %s', async (_, headers, message) => {
    const { call } = await serveApi()
    const answer = await call('GET', '/webhooks', undefined, headers)
    expect([answer.status, answer.body]).toEqual([401, { status: 'fail', message }])
    expect(answer.headers.get('www-authenticate')).toBe('Bearer')
  })

  test('of two different keys are rejected, even if each is valid', async () => {
    const { call, apiKey } = await serveApi()
    const [one, other] = [await apiKey(), await apiKey()]
    for (const authorization of [ownBasic, `Bearer ${accessToken}`, basic(`${one.public_key}:${one.secret}`)]) {
      const { status, body } = await call('GET', '/webhooks', undefined, {
        ...keyPair(other.public_key, other.secret),
        authorization,
      })
      expect([status, body.message]).toEqual([401, expect.stringContaining('two different keys')])
    }
  })

  test('may be an API key until it expires', async () => {
    const { call, apiKey, pass } = await serveApi()
    const { public_key, secret } = await apiKey({ ttl: 60 })
    const both = { ...keyPair(public_key, secret), authorization: basic(`${public_key}:${secret}`) }
    pass(59.999999)
    expect((await call('GET', '/webhooks', undefined, both)).status).toBe(200)
    pass(0.000001)
    const { status, body } = await call('GET', '/webhooks', undefined, both)
    expect([status, body]).toEqual([401, { status: 'fail', message: 'the API key has expired' }])
  })

  test('of the account do not expire, and are in no list', async () => {
    const { call, pass } = await serveApi()
    pass(100 * 365 * 86_400)
    const { status, body } = await call('GET', '/api_keys')
    expect([status, body.data]).toEqual([200, { api_keys: [], total: 0 }])
  })

  test('that are wrong do not appear in the answer', async () => {
    const { call } = await serveApi()
    const { body } = await call('GET', '/webhooks', undefined, {
      ...keyPair('GUESSED', 'GUESSED'),
      authorization: 'Bearer GUESSED',
    })
    expect(JSON.stringify(body)).not.toContain('GUESSED')
  })
})

describe('the rate limit', () => {
  const limits = ({ headers }: { headers: Headers }) =>
    ['limit', 'remaining', 'retry-after'].map((name) => headers.get(`x-ratelimit-${name}`))

  test('is in the headers of every answer', async () => {
    const { call, pass } = await serveApi()
    expect(limits(await call('GET', '/webhooks'))).toEqual(['6000', '5999', '60'])
    pass(20)
    expect(limits(await call('POST', '/webhooks', {}))).toEqual(['6000', '5998', '40'])
    expect(limits(await call('GET', '/nowhere'))).toEqual(['6000', '5997', '40'])
    expect(limits(await call('PUT', '/webhooks'))).toEqual(['6000', '5996', '40'])
    pass(40)
    expect(limits(await call('GET', '/webhooks'))).toEqual(['6000', '5999', '60'])
  })

  test('applies to each credential, and to all requests without one together', async () => {
    const { call, apiKey } = await serveApi()
    const { public_key, secret } = await apiKey()
    expect(limits(await call('GET', '/webhooks', undefined, keyPair(public_key, secret)))[1]).toBe('5999')
    expect(limits(await call('GET', '/webhooks', undefined, {}))[1]).toBe('5999')
    expect(limits(await call('GET', '/webhooks', undefined, { authorization: 'Bearer wrong' }))[1]).toBe('5998')
    expect(limits(await call('GET', '/webhooks', undefined, { authorization: `Bearer ${accessToken}` }))[1]).toBe(
      '5998',
    )
  })

  test('is enforced until the next minute', async () => {
    const { pass, workspace } = await serveApi()
    // This test uses no socket: 6,000 requests over one take seconds.
    const api = createApi({ profile: 'documented', workspace, check: () => Promise.reject() })
    const ask = () => api.request('/webhooks', { headers: account })
    for (let request = 0; request < 6_000; request++) expect((await ask()).status).toBe(200)
    pass(59.5)
    const rejected = await ask()
    expect(rejected.status).toBe(429)
    expect(limits(rejected)).toEqual(['6000', '0', '1'])
    expect(rejected.headers.get('retry-after')).toBe('1')
    expect(await rejected.json()).toEqual({ status: 'fail', message: 'more than 6000 requests in a minute' })
    pass(0.5)
    expect((await ask()).status).toBe(200)
  })
})
