import { setTimeout as sleep } from 'node:timers/promises'
import { describe, expect, test } from 'vitest'
import {
  anyOf,
  basicAuth,
  defineSender,
  headerToken,
  hmacSignature,
  type MediaEvent,
  type Receiver,
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

const secret = 'url-token-4b81'
export const url = `/webhooks/media?token=${secret}`
export const genuine: Partial<ReceiverOptions> = { verify: urlToken({ secret }) }
/** A payload whose media id is of the wrong type for this version. */
export const future =
  '{"type":"encoding.finished","media_id":{"id":"m1"},"title":"A title", "emitted_at":"2026-03-01T12:00:00Z"}'
const bytes = (text: string) => new TextEncoder().encode(text)
const anything: StandardSchema = {
  '~standard': { version: 1, vendor: 'test', validate: (value) => ({ value }) },
}

/** Runs a function as a later version of this package would, which can parse `future`. */
export async function upgraded<T>(run: () => Promise<T>): Promise<T> {
  const parse = JSON.parse
  JSON.parse = (text: string) => {
    const value = parse(text)
    return typeof value?.media_id === 'object' ? { ...value, media_id: value.media_id.id } : value
  }
  try {
    return await run()
  } finally {
    JSON.parse = parse
  }
}

/** Makes a receiver over a fresh inbox. It is closed with the test. */
export type OpenReceiver = (options: Partial<ReceiverOptions>) => Promise<Receiver>

/** Opens a receiver whose handler keeps the events that it gets. */
export async function opened(open: OpenReceiver, options: Partial<ReceiverOptions> = genuine) {
  const receiver = await open(options)
  const handled: MediaEvent[] = []
  receiver.onAny((event) => void handled.push(event))
  return { receiver, deadLetters: receiver.inbox.deadLetters, handled }
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

/** Tests what every inbox does that keeps unreadable deliveries. */
export function checkUnreadable(open: OpenReceiver): void {
  describe('an unreadable delivery', () => {
    test('is answered 400, and kept as it was sent', async () => {
      const { receiver, deadLetters } = await opened(open)
      const before = Date.now()
      expect(await deliver(receiver, future, { url })).toMatchObject({ status: 400, outcome: 'malformed' })
      const [deadLetter] = await deadLetters.list()
      expect(deadLetter).toMatchObject({
        event: undefined,
        attempts: 0,
        completed: [],
        failures: [{ handler: 'none', message: 'field media_id: expected a non-empty string' }],
        unreadable: { reason: 'field media_id: expected a non-empty string' },
      })
      expect(deadLetter?.unreadable?.body).toEqual(bytes(future))
      expect(deadLetter?.receivedAt.getTime()).toBeGreaterThanOrEqual(before)
      expect(deadLetter?.key).toMatch(/^unreadable:/)
      expect(await deadLetters.get(deadLetter?.key ?? '')).toEqual(deadLetter)
      expect(await receiver.inbox.stats()).toMatchObject({ waiting: 0, deadLetters: 1 })
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

    test('is kept once, however often the sender repeats it', async () => {
      const { receiver, deadLetters } = await opened(open)
      for (let i = 0; i < 4; i++) await deliver(receiver, future, { url })
      expect(await deadLetters.list()).toHaveLength(1)
    })

    test('is not kept if it was not verified', async () => {
      const { receiver, deadLetters } = await opened(open)
      expect((await deliver(receiver, future, { url: '/webhooks/media?token=wrong' })).status).toBe(401)
      expect(await deadLetters.list()).toEqual([])
    })

    test('is also answered 400 if it cannot be kept', async () => {
      const { receiver } = await opened(open)
      await receiver.inbox.close()
      expect((await deliver(receiver, future, { url })).status).toBe(400)
    })

    test('stays when it is replayed and still cannot be parsed', async () => {
      const { receiver, deadLetters } = await opened(open)
      await deliver(receiver, future, { url })
      const [deadLetter] = await deadLetters.list()
      await expect(deadLetters.replay(deadLetter?.key ?? '')).rejects.toMatchObject({ code: 'malformed' })
      expect(await deadLetters.list()).toEqual([deadLetter])
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

    test('is handled once when two callers replay it at the same time', async () => {
      const { receiver, deadLetters, handled } = await opened(open)
      await deliver(receiver, future, { url })
      const key = (await deadLetters.list())[0]?.key ?? ''
      const replays = await upgraded(() => Promise.all([deadLetters.replay(key), deadLetters.replay(key)]))
      expect(replays.toSorted()).toEqual([false, true])
      await until(async () => handled.length === 1)
      const stats = async () => receiver.inbox.stats()
      await until(async () => (await stats()).waiting + (await stats()).running === 0)
      expect(handled).toHaveLength(1)
    })

    test('expects what follows it when it is replayed, and is reported in time', async () => {
      const receiver = await open(genuine)
      const reported: string[] = []
      const rule = { then: 'file.received', within: 1_000, name: 'another' } as const
      receiver.expect('encoding.finished', rule, ({ mediaId }) => void reported.push(mediaId))
      await receiver.ready()
      await deliver(receiver, future, { url })
      await sleep(300)
      const [deadLetter] = await receiver.inbox.deadLetters.list()
      expect(await upgraded(async () => receiver.inbox.deadLetters.replay(deadLetter?.key ?? ''))).toBe(true)
      await until(async () => reported.length === 1)
      expect(reported).toEqual(['m1'])
    })

    test('becomes an event with the key that its header names', async () => {
      const { receiver, deadLetters, handled } = await opened(open, { ...genuine, eventKey: { header: 'x-event-id' } })
      await deliver(receiver, future, { url, headers: { 'x-event-id': 'id-1' } })
      const [deadLetter] = await deadLetters.list()
      await upgraded(async () => deadLetters.replay(deadLetter?.key ?? ''))
      await until(async () => handled.length === 1)
      expect(handled[0]?.key).toBe('id-1')
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
      [
        'reads a header beside the event',
        ({ type }, { headers }) => `${type} ${headers.get('x-event-id')}`,
        { id: '1' },
      ],
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

    test('is handled if eventKey is a function that returns a header, which is then missing', async () => {
      const eventKey: ReceiverOptions['eventKey'] = (_, { headers }) => headers.get('x-event-id') as string
      const { receiver, deadLetters, handled } = await opened(open, { ...genuine, eventKey })
      await deliver(receiver, future, { url, headers: { 'x-event-id': 'id-1' } })
      const [deadLetter] = await deadLetters.list()
      expect(await upgraded(async () => deadLetters.replay(deadLetter?.key ?? ''))).toBe(true)
      await until(async () => handled.length === 1)
    })

    test('can be discarded', async () => {
      const { receiver, deadLetters } = await opened(open)
      await deliver(receiver, future, { url })
      const [deadLetter] = await deadLetters.list()
      expect(await deadLetters.discard(deadLetter?.key ?? '')).toBe(true)
      expect(await deadLetters.list()).toEqual([])
    })
  })
}
