import { describe, expect, test, vi } from 'vitest'
import {
  anyOf,
  headerToken,
  hmacSignature,
  standardWebhooks,
  unverified,
  urlToken,
  type Verifier,
} from '../../src/index.ts'
import {
  makeDelivery,
  samplePayload,
  signWithHmac,
  signWithStandardWebhooks,
  signWithUrlToken,
} from '../../src/testing/index.ts'
import { revokedProxy, untyped } from '../support/untyped.ts'
import { deliveryWith, messageOfBuild, verdict } from './verdict.ts'

const token = { secret: 'a token' }
const hmac = { secret: 'a shared secret', header: 'x-signature' }
const standard = { secret: 'whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw' }
const throwing = (verify: Verifier['verify']): Verifier => ({ name: 'broken', needsBytes: false, verify })

describe('anyOf', () => {
  test('verifies what any of its verifiers verifies', async () => {
    const verifier = anyOf(urlToken(token), hmacSignature(hmac), standardWebhooks(standard))
    for (const sign of [signWithUrlToken(token), signWithHmac(hmac), signWithStandardWebhooks(standard)]) {
      expect(await verdict(verifier, await makeDelivery(samplePayload('encoding.finished'), { sign }))).toBe('verified')
    }
  })

  test('does not verify a delivery that none of them verifies, and gives the reason of each', async () => {
    const reason = await verdict(anyOf(urlToken(token), hmacSignature(hmac)), deliveryWith({}, '/?token=wrong'))
    expect(reason).toBe('urlToken: the token in the URL is wrong; hmacSignature: header x-signature is missing')
  })

  test.each([
    ['rejects', () => Promise.reject(new Error('broken'))],
    [
      'throws',
      () => {
        throw new Error('broken')
      },
    ],
    ['returns nothing', () => untyped(undefined)],
    ['rejects with a revoked proxy', () => Promise.reject(revokedProxy())],
  ])('lets the others decide when one %s', async (_, verify) => {
    const good = urlToken(token)
    const accepted = deliveryWith({}, '/?token=a%20token')
    for (const verifier of [anyOf(throwing(verify), good), anyOf(good, throwing(verify))]) {
      expect(await verdict(verifier, accepted)).toBe('verified')
      expect(await verdict(verifier, deliveryWith({}, '/?token=wrong'))).toMatch(/broken: threw a /)
    }
    expect(await verdict(anyOf(throwing(verify)), accepted)).toMatch(/^broken: threw a /)
  })

  test('does not ask the rest once one has verified', async () => {
    const second = { ...unverified(), verify: vi.fn(unverified().verify) }
    await anyOf(unverified(), second).verify({ url: '/', headers: new Headers(), body: new Uint8Array() })
    expect(second.verify).not.toHaveBeenCalled()
  })

  test('passes on the event id of the verifier that verified', async () => {
    const delivery = await makeDelivery(samplePayload('encoding.finished'), {
      sign: signWithStandardWebhooks({ ...standard, id: 'msg_7' }),
    })
    const verification = await anyOf(urlToken(token), standardWebhooks(standard)).verify({
      ...delivery,
      body: delivery.body as Uint8Array,
    })
    expect(verification).toEqual({ verified: true, eventId: 'msg_7' })
  })

  test('is unavailable if none of them verifies and one could not decide', async () => {
    const error = new Error('the secret manager is down')
    const down = headerToken({ secret: () => Promise.reject(error), header: 'x-token' })
    const verifier = anyOf(down, urlToken(token))
    const ask = (url: string, fields = { 'x-token': 'anything' }) =>
      verifier.verify({ url, headers: new Headers(fields), body: new Uint8Array() })
    expect(await ask('/?token=a%20token')).toEqual({ verified: true })
    expect(await ask('/?token=wrong')).toEqual({
      verified: false,
      unavailable: true,
      reason: 'headerToken: the secret function of headerToken threw; urlToken: the token in the URL is wrong',
      error,
    })
    expect(await verifier.verify({ url: '/?token=wrong', headers: new Headers(), body: new Uint8Array() })).toEqual({
      verified: false,
      reason: 'headerToken: header x-token is missing; urlToken: the token in the URL is wrong',
    })
  })

  test('needs the bytes when one of them does', () => {
    expect(anyOf(urlToken(token), unverified()).needsBytes).toBe(false)
    expect(anyOf(urlToken(token), hmacSignature(hmac)).needsBytes).toBe(true)
  })

  test('needs the bytes when one of them does not say', () => {
    const silent = { ...unverified(), needsBytes: untyped(undefined) }
    expect(anyOf(unverified(), silent).needsBytes).toBe(true)
  })

  test('is named after its verifiers', () => {
    expect(anyOf(urlToken(token), hmacSignature(hmac)).name).toBe('anyOf(urlToken, hmacSignature)')
  })

  test.each([
    ['an empty list', []],
    ['undefined', [undefined]],
    ['something else than a verifier', [{ name: 'x' }]],
    ['a list with something else at its end', [unverified(), null]],
    ['a list with something else at its beginning', [{ verify: true }, unverified()]],
  ])('cannot be built from %s', (_, verifiers) => {
    expect(messageOfBuild(() => anyOf(...(verifiers as Verifier[])))).toMatch(/at least one verifier/)
  })
})
