import { createHmac } from 'node:crypto'
import { describe, expect, test } from 'vitest'
import * as z from 'zod/mini'
import {
  type Challenge,
  type ChallengeRequest,
  createReceiver,
  defineSender,
  hmacSignature,
  type ReceiverOptions,
  urlToken,
} from '../../src/index.ts'
import { samplePayload, signWithHmac } from '../../src/testing/index.ts'
import { silent } from '../support/silent.ts'
import { untyped } from '../support/untyped.ts'

const signature = { secret: 'a secret', header: 'x-signature' }

function subject(challenge: Challenge | undefined, options: Partial<ReceiverOptions> = {}) {
  const sender = defineSender({
    name: 'mine',
    events: { 'encoding.finished': z.unknown() },
    read: ({ type, media_id }) => ({ type, mediaId: media_id }),
    ...(challenge && { challenge }),
  })
  const outcomes: string[] = []
  const handled: string[] = []
  const receiver = createReceiver<unknown, typeof sender>({
    sender,
    verify: hmacSignature(signature),
    logger: silent,
    handlers: { 'encoding.finished': ({ type }) => void handled.push(type) },
    hooks: { delivery: ({ outcome }) => void outcomes.push(outcome) },
    ...(options as object),
  })
  const get = (url: string, method = 'GET') =>
    receiver.receive({ method, url, headers: new Headers(), body: new Uint8Array() })
  const post = async (payload: object, isSigned = true, url = '/webhooks') => {
    const body = new TextEncoder().encode(JSON.stringify(payload))
    const signed = isSigned ? (await signWithHmac(signature)({ url, headers: {}, body })).headers : {}
    return receiver.receive({ method: 'POST', url, headers: new Headers(signed), body })
  }
  return { get, post, outcomes, handled, receiver }
}

const facebook = ({ method, query }: ChallengeRequest) =>
  method === 'GET' && query.get('hub.verify_token') === 'token' ? query.get('hub.challenge') : undefined

describe('a handshake by GET', () => {
  test('is answered with text, which no browser takes for a page and no cache keeps', async () => {
    const { get, outcomes } = subject(facebook)
    const answer = await get('/webhooks?hub.mode=subscribe&hub.verify_token=token&hub.challenge=%3Cb%3E%C3%A9')
    expect(answer).toEqual({
      outcome: 'challenge',
      status: 200,
      headers: {
        'content-type': 'text/plain; charset=utf-8',
        'content-length': '5',
        'cache-control': 'no-store',
        'x-content-type-options': 'nosniff',
      },
      body: '<b>é',
    })
    expect(outcomes).toEqual(['challenge'])
  })

  test('is answered 405 if it is none, and without the option', async () => {
    expect(await subject(facebook).get('/webhooks?hub.verify_token=wrong&hub.challenge=1')).toMatchObject({
      status: 405,
    })
    expect(await subject(undefined).get('/webhooks?challenge=1')).toMatchObject({ status: 405 })
  })

  test('is verified where the verifier needs no body', async () => {
    const { get } = subject(({ query }) => query.get('challenge'), { verify: urlToken({ secret: 'token' }) })
    expect(await get('/webhooks?challenge=1&token=token')).toMatchObject({ status: 200, body: '1' })
    expect(await get('/webhooks?challenge=1&token=forged')).toMatchObject({ status: 401 })
  })

  test.each(['PUT', 'HEAD', 'OPTIONS'])('is not asked about with %s', async (method) => {
    expect(await subject(() => 'yes').get('/webhooks', method)).toMatchObject({ status: 405 })
  })
})

describe('a handshake by POST', () => {
  const zoom = ({ payload }: ChallengeRequest) =>
    payload?.event === 'endpoint.url_validation'
      ? {
          plainToken: payload.payload.plainToken,
          encryptedToken: createHmac('sha256', 'secret').update(payload.payload.plainToken).digest('hex'),
        }
      : undefined
  const validation = { event: 'endpoint.url_validation', payload: { plainToken: 'q9ibPhGeRZ6ayx5WTrXjRw' } }

  test('is answered with JSON', async () => {
    const answer = await subject(zoom).post(validation)
    expect(answer.headers['content-type']).toBe('application/json')
    const encryptedToken = createHmac('sha256', 'secret').update('q9ibPhGeRZ6ayx5WTrXjRw').digest('hex')
    expect(JSON.parse(answer.body)).toEqual({ plainToken: 'q9ibPhGeRZ6ayx5WTrXjRw', encryptedToken })
  })

  test('is never answered from a payload that was not verified: it would sign what anyone asks for', async () => {
    const { post, outcomes } = subject(zoom)
    expect(await post(validation, false)).toMatchObject({ status: 401 })
    expect(outcomes).toEqual(['unauthorized'])
  })

  test('may have a payload that no event has, and leaves events alone', async () => {
    const { post, handled, receiver } = subject(({ payload }) =>
      payload?.type === 'url_verification' ? payload.challenge : undefined,
    )
    expect(await post({ type: 'url_verification', challenge: '3eZbrw1aB' })).toMatchObject({ body: '3eZbrw1aB' })
    expect(await post(samplePayload('encoding.finished'))).toMatchObject({ outcome: 'accepted' })
    await receiver.close()
    expect(handled).toEqual(['encoding.finished'])
    expect(await subject(() => undefined).post({})).toMatchObject({ outcome: 'malformed' })
  })

  test('may be in the URL, before anything is verified or read', async () => {
    const { receiver } = subject(({ method, query }) => (method === 'POST' ? query.get('validationToken') : undefined))
    const headers = new Headers({ 'content-type': 'text/plain; charset=utf-8' })
    const url = '/webhooks?validationToken=Validation%3a+Testing'
    const answer = await receiver.receive({ method: 'POST', url, headers, body: () => new Uint8Array() })
    expect(answer).toMatchObject({ outcome: 'challenge', body: 'Validation: Testing' })
  })
})

describe('a challenge', () => {
  test('may answer later, for as long as a body may take', async () => {
    const late = subject(() => new Promise(() => {}), { bodyTimeoutMs: 20 })
    expect(await late.get('/')).toMatchObject({ status: 503, outcome: 'unavailable' })
    expect(await subject(async () => 'yes').get('/')).toMatchObject({ status: 200, body: 'yes' })
  })

  test.each([
    [
      'throws',
      () => {
        throw new Error('secret')
      },
    ],
    ['rejects', () => Promise.reject(new Error('secret'))],
    ['returns a number', () => untyped(7)],
    ['returns what is not JSON', () => ({ secret: 1n })],
  ])('that %s is answered 500, and the reason is for the log', async (_, challenge) => {
    const answer = await subject(challenge).get('/')
    expect(answer).toMatchObject({ status: 500, outcome: 'internal' })
    expect(answer.body).not.toContain('secret')
  })

  test('gets a payload that it cannot change, without prototypes', async () => {
    let given: { payload?: object } = {}
    const { post } = subject((request) => {
      given = request
      return undefined
    })
    await post(JSON.parse('{"__proto__":{"admin":true},"a":{}}'))
    expect(Object.keys(given.payload ?? {})).toEqual(['a'])
    expect(({} as { admin?: true }).admin).toBeUndefined()
  })

  test('is not asked while the receiver closes', async () => {
    const { receiver, get } = subject(() => 'yes')
    await receiver.close()
    expect(await get('/')).toMatchObject({ status: 503, outcome: 'closing' })
  })

  test('must be a function', () => {
    expect(() => subject(untyped('yes'))).toThrow(/challenge must be a function/)
  })
})
