import { describe, expect, onTestFinished, test } from 'vitest'
import {
  anyOf,
  basicAuth,
  defineSender,
  headerToken,
  hmacSignature,
  type ReceiverOptions,
  type StandardSchema,
  standardWebhooks,
  timestampedSignature,
  urlToken,
  type Verifier,
} from '../../src/index.ts'
import {
  deliver,
  type Signer,
  signWithBasicAuth,
  signWithHeaderToken,
  signWithHmac,
  signWithStandardWebhooks,
  signWithTimestampedSignature,
  signWithUrlToken,
} from '../../src/testing/index.ts'
import { until } from '../support/inbox.ts'
import { future, genuine, opened, secret, upgraded, url } from '../support/unreadable.ts'
import { receiverWith } from './listening-receiver.ts'

const bytes = (text: string) => new TextEncoder().encode(text)
const anything: StandardSchema = {
  '~standard': { version: 1, vendor: 'test', validate: (value) => ({ value }) },
}

const hmac = { secret, header: 'x-signature' }
const standard = { secret: `whsec_${btoa('a-standard-webhooks-secret-81c2')}` }
const password = 'basic-password-5e0d'
const header = 'header-token-77aa'

/** Every verifier, with a signer that it verifies and the secrets that must not leave it. */
const verifiers: [string, Verifier, Signer, string[]][] = [
  ['urlToken in the query', urlToken({ secret }), signWithUrlToken({ secret }), [secret]],
  ['urlToken in the path', urlToken({ secret, in: 'path' }), signWithUrlToken({ secret, in: 'path' }), [secret]],
  [
    'headerToken',
    headerToken({ secret: header, header: 'x-token' }),
    signWithHeaderToken({ secret: header, header: 'x-token' }),
    [header],
  ],
  [
    'basicAuth',
    basicAuth({ username: 'media', password }),
    signWithBasicAuth({ username: 'media', password }),
    [password, btoa(`media:${password}`)],
  ],
  ['hmacSignature', hmacSignature(hmac), signWithHmac(hmac), [secret]],
  ['standardWebhooks', standardWebhooks(standard), signWithStandardWebhooks(standard), [standard.secret.slice(6)]],
  ['timestampedSignature', timestampedSignature(hmac), signWithTimestampedSignature(hmac), [secret]],
  [
    'anyOf',
    anyOf(hmacSignature(hmac), urlToken({ secret: header, in: 'path' })),
    signWithUrlToken({ secret: header, in: 'path' }),
    [secret, header],
  ],
]

async function open(options: Partial<ReceiverOptions>) {
  const receiver = receiverWith(options)
  onTestFinished(async () => void (await receiver.close({ timeoutMs: 1 })))
  return receiver
}

describe('an unreadable delivery', () => {
  test('is answered 400, and kept as it was sent', async () => {
    const { receiver, deadLetters } = await opened(open)
    expect(await deliver(receiver, future, { url })).toMatchObject({ status: 400, outcome: 'malformed' })
    const [deadLetter] = await deadLetters.list()
    expect(deadLetter?.unreadable).toMatchObject({
      reason: 'field media_id: expected a non-empty string',
      body: bytes(future),
    })
    expect(JSON.stringify(deadLetter)).not.toContain(secret)
  })

  test.each([
    ['no UTF-8', new Uint8Array([0x7b, 0xff, 0x00, 0x7d])],
    ['no JSON', bytes('{"type":')],
    ['no object', bytes('[]')],
  ])('is kept if it is %s', async (_, body) => {
    const { receiver, deadLetters } = await opened(open)
    expect((await deliver(receiver, body, { url })).status).toBe(400)
    const [deadLetter] = await deadLetters.list()
    expect(deadLetter?.unreadable?.body).toEqual(body)
  })

  test('is handled once when it is replayed after an upgrade', async () => {
    const { receiver, deadLetters, handled } = await opened(open)
    await deliver(receiver, future, { url })
    const [deadLetter] = await deadLetters.list()
    const key = deadLetter?.key ?? ''
    expect(await upgraded(async () => deadLetters.replay(key))).toBe(true)
    await until(async () => handled.length === 1)
    expect(handled[0]).toMatchObject({ type: 'encoding.finished', mediaId: 'm1', title: 'A title' })
    expect(await deadLetters.list()).toEqual([])
    expect(await deadLetters.replay(key)).toBe(false)
    expect(await upgraded(async () => deliver(receiver, future, { url }))).toMatchObject({ outcome: 'duplicate' })
    expect(handled).toHaveLength(1)
  })

  test.each(verifiers)('holds no secret of %s, and neither do logs and reports', async (_, verify, sign, secrets) => {
    const seen: unknown[] = []
    const log = (...line: unknown[]) => void seen.push(line)
    const logger = { debug: log, info: log, warn: log, error: log }
    const hooks = { delivery: (report: object) => void seen.push(report) }
    const { receiver, deadLetters } = await opened(open, { verify, logger, hooks })
    expect((await deliver(receiver, future, { url: '/webhooks/media', sign })).status).toBe(400)
    const kept = await deadLetters.list()
    expect(kept).toHaveLength(1)
    const text = JSON.stringify([kept, seen], (_key, value) => (value instanceof Error ? `${value}` : value))
    for (const each of secrets) expect(text).not.toContain(each)
  })

  test.each<[string, ReceiverOptions['eventKey'], { id?: string }]>([
    ['is a header', { header: 'X-Event-Id' }, { id: 'a b' }],
    ['reads a header', (_, { headers }) => `${headers.get('X-Event-Id')}`, { id: 'a b' }],
    ['returns a header', (_, { headers }) => headers.get('x-event-id') as string, { id: '1' }],
    ['reads a header beside the event', ({ type }, { headers }) => `${type} ${headers.get('x-event-id')}`, { id: '1' }],
    [
      'reads a header that is missing',
      ({ principal, key }, { headers }) => JSON.stringify([principal, headers.get('x-event-id') ?? key]),
      {},
    ],
    [
      'reads the URL',
      (_, delivery) => new URL(delivery.url, 'http://localhost').searchParams.get('id') ?? '',
      { id: 'a b' },
    ],
    ['takes the whole URL', (_, delivery) => delivery.url, { id: '1' }],
  ])('is the same event as its repetition if eventKey %s', async (_, eventKey, { id }) => {
    const { receiver, deadLetters, handled } = await opened(open, { ...genuine, eventKey })
    const sent =
      id === undefined ? { url } : { url: `${url}&id=${encodeURIComponent(id)}`, headers: { 'x-event-id': id } }
    await deliver(receiver, future, sent)
    const [deadLetter] = await deadLetters.list()
    expect(JSON.stringify(deadLetter)).not.toContain(secret)
    expect(await upgraded(async () => deadLetters.replay(deadLetter?.key ?? ''))).toBe(true)
    await until(async () => handled.length === 1)
    expect(handled[0]?.key).not.toContain(secret)
    expect(await upgraded(async () => deliver(receiver, future, sent))).toMatchObject({ outcome: 'duplicate' })
  })

  test.each<[string, Partial<ReceiverOptions>]>([
    ['the header of eventKey', { ...genuine, eventKey: { header: 'x-event-id' } }],
    ['a header that eventKey reads', { ...genuine, eventKey: (_, { headers }) => `${headers.get('x-event-id')}` }],
    ['a URL that eventKey reads', { ...genuine, eventKey: (_, delivery) => delivery.url }],
    [
      'the verifier',
      {
        verify: {
          name: 'ids',
          needsBytes: false,
          verify: ({ headers }) => ({ verified: true, eventId: `${headers.get('x-event-id')}` }),
        },
      },
    ],
  ])('is another one if its bytes are equal but its id is not, by %s', async (_, options) => {
    const { receiver, deadLetters, handled } = await opened(open, options)
    for (const id of ['1', '2', '2'])
      await deliver(receiver, future, { url: `${url}&id=${id}`, headers: { 'x-event-id': id } })
    const kept = await deadLetters.list()
    expect(kept).toHaveLength(2)
    for (const { key } of kept) expect(await upgraded(async () => deadLetters.replay(key))).toBe(true)
    await until(async () => handled.length === 2)
    expect(new Set(handled.map(({ key }) => key)).size).toBe(2)
  })

  test('is another one if a header that its sender reads differs, even if nothing was parsed yet', async () => {
    const sender = defineSender({
      name: 'own',
      events: { push: anything },
      read: ({ media_id }, headers) => ({ id: headers.get('x-id'), type: 'push', mediaId: media_id.id }),
    })
    const { receiver, deadLetters } = await opened(open, { ...genuine, sender } as never)
    for (const id of ['1', '2']) await deliver(receiver, '{"media_id":', { url, headers: { 'x-id': id } })
    expect((await deadLetters.list()).map(({ unreadable }) => unreadable?.headers)).toEqual([
      { 'x-id': '2' },
      { 'x-id': '1' },
    ])
  })

  test('has the key of the header that eventKey names, though its sender reads an id too', async () => {
    const sender = defineSender({
      name: 'own',
      events: { push: anything },
      read: ({ media_id }) => ({ id: 'of the payload', type: 'push', mediaId: media_id }),
    })
    const { receiver, deadLetters, handled } = await opened(open, {
      ...genuine,
      sender,
      eventKey: { header: 'x-event-id' },
    } as never)
    await deliver(receiver, future, { url, headers: { 'x-event-id': 'id-1' } })
    const [deadLetter] = await deadLetters.list()
    await upgraded(async () => deadLetters.replay(deadLetter?.key ?? ''))
    await until(async () => handled.length === 1)
    expect(handled[0]?.key).toBe('id-1')
  })

  test('is handled with its principal, and kept once for each principal that sends the same bytes', async () => {
    const tokens = { acme: 'token-of-acme', zoo: 'token-of-zoo' }
    const { receiver, deadLetters, handled } = await opened(open, { verify: urlToken({ secret: tokens }) })
    for (const token of Object.values(tokens)) await deliver(receiver, future, { url: `/?token=${token}` })
    const kept = await deadLetters.list()
    expect(kept.map(({ unreadable }) => unreadable?.principal).toSorted()).toEqual(['acme', 'zoo'])
    for (const { key } of kept) expect(await upgraded(async () => deadLetters.replay(key))).toBe(true)
    await until(async () => handled.length === 2)
    expect(handled.map(({ principal }) => principal).toSorted()).toEqual(['acme', 'zoo'])
    const again = await upgraded(async () => deliver(receiver, future, { url: `/?token=${tokens.zoo}` }))
    expect(again.outcome).toBe('duplicate')
  })

  test('is handled with the headers that its sender reads, and kept once for each of their values', async () => {
    let takesAll = false
    const validate = (value: unknown) => (takesAll ? { value } : { issues: [{ message: 'not yet' }] })
    const schema: StandardSchema = { '~standard': { version: 1, vendor: 'test', validate } }
    const sender = defineSender({
      name: 'own',
      events: { push: schema, pull: schema },
      read: ({ media_id }, headers) => ({ type: headers.get('x-type') ?? 'none', mediaId: media_id.id }),
    })
    const { receiver, deadLetters, handled } = await opened(open, { ...genuine, sender } as never)
    const headers = { authorization: 'secret', 'x-type': 'push' }
    for (const type of ['push', 'push', 'pull'])
      expect((await deliver(receiver, future, { url, headers: { ...headers, 'x-type': type } })).status).toBe(400)
    const kept = await deadLetters.list()
    expect(kept.map(({ unreadable }) => unreadable?.headers?.['x-type']).toSorted()).toEqual(['pull', 'push'])
    expect(kept[0]?.unreadable?.headers).not.toHaveProperty('authorization')
    takesAll = true
    for (const { key } of kept) expect(await deadLetters.replay(key)).toBe(true)
    await until(async () => handled.length === 2)
    expect(handled.map(({ type }) => type as string).toSorted()).toEqual(['pull', 'push'])
  })
})
