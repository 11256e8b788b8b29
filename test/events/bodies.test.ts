import { gzipSync } from 'node:zlib'
import { describe, expect, test } from 'vitest'
import * as z from 'zod/mini'
import {
  createReceiver,
  defineSender,
  hmacSignature,
  type SenderDefinition,
  unverified,
  WebhookError,
} from '../../src/index.ts'
import { deliver, signWithHmac } from '../../src/testing/index.ts'
import { silent } from '../support/silent.ts'
import { untyped } from '../support/untyped.ts'
import { receiving } from './senders.ts'

const anything = z.record(z.string(), z.unknown())

const senderOf = (definition: Partial<SenderDefinition<{ a: unknown }>>) =>
  defineSender({
    name: 'mine',
    events: { a: anything },
    read: (data) => ({ type: 'a', mediaId: 'm1', data }),
    ...definition,
  })

const typed = (type: string) => ({ 'content-type': type })
const formType = typed('application/x-www-form-urlencoded')

describe('a sender of forms', () => {
  const form = senderOf({ body: 'form' })

  test('gets an object of strings', async () => {
    const { handled, send } = receiving(form)
    expect(await send('From=%2B1415&Body=a+b%26c&Empty=', formType)).toMatchObject({ outcome: 'accepted' })
    expect(handled[0].payload).toEqual({ From: '+1415', Body: 'a b&c', Empty: '' })
  })

  test('can read JSON in a field, as GitHub posts it', async () => {
    const sender = senderOf({ body: 'form', read: ({ payload }) => ({ type: 'a', ...JSON.parse(payload) }) })
    const { handled, send } = receiving(sender)
    await send(`payload=${encodeURIComponent('{"mediaId":"7"}')}`, formType)
    expect(handled).toMatchObject([{ mediaId: '7' }])
  })

  test('is given by a test as an object', async () => {
    const receiver = createReceiver({ sender: form, verify: unverified(), logger: silent, handlers: { a: () => {} } })
    expect(await deliver(receiver, { From: '+1', Body: 'a b' })).toMatchObject({ outcome: 'accepted' })
  })

  test('may come from a body parser, unless that has nested its fields', async () => {
    const { receiver, handled } = receiving(form)
    const post = (parsed: unknown) =>
      receiver.receive({ method: 'POST', url: '/', headers: new Headers(formType), body: { parsed } })
    expect(await post({ From: '+1', Body: 'a b' })).toMatchObject({ outcome: 'accepted' })
    await expect.poll(() => handled).toMatchObject([{ payload: { From: '+1', Body: 'a b' } }])
    const nested = await post({ a: { b: 'secret' } })
    expect(JSON.parse(nested.body)).toMatchObject({ code: 'malformed', message: 'field "a": expected a text' })
  })

  test('is answered 415 for JSON', async () => {
    const { send } = receiving(form)
    const answer = await send({}, typed('application/json'))
    expect(answer.status).toBe(415)
    expect(JSON.parse(answer.body).message).toBe('content-type must be application/x-www-form-urlencoded')
  })

  test.each([
    ['a field that comes twice', 'a=secret&b=1&a=secret', 'field "a": sent more than once'],
    ['what is not UTF-8', 'a=%ff', 'the body is not a form in UTF-8'],
    ['a broken escape', 'a=%4', 'the body is not a form in UTF-8'],
    [
      'too many fields',
      Array.from({ length: 5_000 }, (_, n) => `f${n}=`).join('&'),
      'the body has more than 4096 values',
    ],
    [
      'a long name that comes twice',
      `${'x'.repeat(500)}=1&${'x'.repeat(500)}=2`,
      `field "${'x'.repeat(100)}": sent more than once`,
    ],
  ])('is answered 400 for %s, without its value', async (_, body, message) => {
    const { send, deadLetters } = receiving(form)
    const answer = await send(body, formType)
    expect(JSON.parse(answer.body)).toMatchObject({ code: 'malformed', message })
    expect(answer.body).not.toContain('secret')
    expect(await deadLetters.list()).toHaveLength(1)
  })

  test('leaves brackets in names as they are, and keeps __proto__ from read', async () => {
    const { handled, send } = receiving(form)
    await send('a[b]=1&__proto__=2&constructor=3', formType)
    expect(handled[0].data).toEqual({ 'a[b]': '1', constructor: '3' })
  })
})

describe('the content types of a sender', () => {
  test.each(['text/plain', 'Text/Plain; charset=UTF-8', 'text/plain ;x'])('may include %s', async (type) => {
    const { send } = receiving(senderOf({ contentTypes: ['text/plain', 'application/json'] }))
    expect(await send({}, typed(type))).toMatchObject({ outcome: 'accepted' })
  })

  test('exclude all others, which are named', async () => {
    const { send } = receiving(senderOf({ contentTypes: ['text/plain', 'text/x'] }))
    const answer = await send({}, typed('text/plainer'))
    expect(JSON.parse(answer.body).message).toBe('content-type must be text/plain or text/x')
  })

  test.each([['text'], [[]], [['text']], [['text/plain; charset=utf-8']], [[7]]])('cannot be %j', (contentTypes) => {
    expect(() => senderOf({ contentTypes: untyped(contentTypes) })).toThrow(
      /contentTypes must be a list of content types/,
    )
  })
})

describe('a sender whose body is read by a function', () => {
  const lines = senderOf({
    body: (text, headers) => ({ version: headers.get('x-version'), fields: text.split('\n') }),
  })

  test('gets what the function makes of the text, whatever the content type', async () => {
    const { handled, send } = receiving(lines)
    expect(await send('a\nb', { ...typed('text/csv'), 'x-version': '2' })).toMatchObject({ outcome: 'accepted' })
    expect(handled[0].payload).toEqual({ version: '2', fields: ['a', 'b'] })
  })

  test.each<[string, unknown]>([
    [
      'throws',
      () => {
        throw new Error('secret')
      },
    ],
    ['returns a text', () => 'secret'],
    ['returns nothing', () => undefined],
    ['is async', async () => Promise.reject(new Error('secret'))],
    ['returns what is not JSON', () => ({ secret: 1n })],
  ])('is malformed and kept if the function %s', async (_, body) => {
    const { send, deadLetters } = receiving(senderOf({ body: untyped(body) }))
    const answer = await send('secret', typed('text/csv'))
    expect(answer).toMatchObject({ status: 400, outcome: 'malformed' })
    expect(answer.body).not.toContain('secret')
    expect(await deadLetters.list()).toHaveLength(1)
  })

  test('is malformed in its own words', async () => {
    const body = () => {
      throw new WebhookError('malformed', 'line 1: no version')
    }
    const { send } = receiving(senderOf({ body }))
    expect((await send('x')).body).toContain('line 1: no version')
  })

  test('keeps the headers that it asked for, so that what was unreadable can be replayed', async () => {
    let isFixed = false
    const body = (text: string, headers: { get(name: string): string | null }) => {
      const version = headers.get('x-version')
      if (!isFixed) throw new Error('not yet')
      return { version, text }
    }
    const { handled, send, deadLetters } = receiving(senderOf({ body }))
    await send('text', { 'x-version': '2' })
    isFixed = true
    const [{ key } = { key: '' }] = await deadLetters.list()
    expect(await deadLetters.replay(key)).toBe(true)
    await expect.poll(() => handled).toMatchObject([{ payload: { version: '2', text: 'text' } }])
  })
})

describe('a compressed body', () => {
  const packed = senderOf({ gzip: true })
  const gzip = { ...typed('application/json'), 'content-encoding': 'gzip' }
  const secret = 'a secret'
  const signature = { secret, header: 'x-signature' }

  async function post(
    bytes: Uint8Array,
    { sender = packed, headers = gzip as object, maxBodyBytes = 65_536, body = undefined as unknown } = {},
  ) {
    const receiver = createReceiver({
      sender,
      verify: { name: 'any', needsBytes: true, verify: () => ({ verified: true }) },
      maxBodyBytes,
      logger: silent,
      handlers: { a: () => {} },
    })
    const given = body ?? (() => bytes)
    return receiver.receive({ method: 'POST', url: '/', headers: new Headers(headers as never), body: given as never })
  }

  test('is decompressed', async () => {
    expect(await post(gzipSync('{}'))).toMatchObject({ outcome: 'accepted' })
    expect(await post(gzipSync('{'))).toMatchObject({ outcome: 'malformed' })
  })

  test('is signed as it was before it was compressed', async () => {
    const receiver = createReceiver({
      sender: packed,
      verify: hmacSignature(signature),
      logger: silent,
      handlers: { a: () => {} },
    })
    const signed = await signWithHmac(signature)({ url: '/', headers: {}, body: new TextEncoder().encode('{}') })
    const headers = new Headers({ ...gzip, ...signed.headers })
    expect(await receiver.receive({ method: 'POST', url: '/', headers, body: () => gzipSync('{}') })).toMatchObject({
      outcome: 'accepted',
    })
  })

  test('is too large by what it holds, not by what it is: a bomb is answered 413', async () => {
    const bomb = gzipSync(new Uint8Array(200_000_000))
    expect(bomb.byteLength).toBeLessThan(200_000)
    const before = process.memoryUsage().rss
    expect(await post(bomb, { maxBodyBytes: 1_000_000 })).toMatchObject({ status: 413, outcome: 'too_large' })
    expect(process.memoryUsage().rss - before).toBeLessThan(100_000_000)
  })

  test.each([
    ['is cut off', gzipSync('{"a":1}').subarray(0, -5)],
    ['has a wrong checksum', Buffer.concat([gzipSync('{}').subarray(0, -8), Buffer.alloc(8)])],
    ['has more behind it', Buffer.concat([gzipSync('{}'), Buffer.from('x')])],
  ])('that %s is malformed', async (_, bytes) => {
    expect(await post(bytes)).toMatchObject({ status: 400, outcome: 'malformed' })
  })

  test('is left as it is where a parser has decompressed it', async () => {
    expect(await post(new Uint8Array(), { body: new TextEncoder().encode('{}') })).toMatchObject({
      outcome: 'accepted',
    })
  })

  test('is answered 415 without that option, or in another coding', async () => {
    expect(await post(gzipSync('{}'), { sender: senderOf({}) })).toMatchObject({ status: 415 })
    const answer = await post(gzipSync('{}'), { headers: { 'content-encoding': 'br' } })
    expect(JSON.parse(answer.body).message).toBe(
      'content-encoding must be gzip or identity: send the body uncompressed',
    )
  })
})

describe('the exact text', () => {
  test('is what read gets of every body', async () => {
    const sender = senderOf({ read: (_, __, { text }) => ({ type: 'a', mediaId: text }) })
    const { handled, send } = receiving(sender)
    await send('{"a": 1.50}')
    expect(handled[0].mediaId).toBe('{"a": 1.50}')
  })
})

describe('maxJsonValues', () => {
  const order = {
    items: Array.from({ length: 80 }, (_, n) => Object.fromEntries(Array.from({ length: 60 }, (_, m) => [`f${m}`, n]))),
  }

  test('is 4,096 by default, and can be raised for larger payloads', async () => {
    expect(await receiving(senderOf({})).send(order)).toMatchObject({ status: 400 })
    expect(await receiving(senderOf({}), { maxJsonValues: 10_000 }).send(order)).toMatchObject({ outcome: 'accepted' })
  })

  test.each([0, 1.5, '10'])('cannot be %j', (maxJsonValues) => {
    expect(() => receiving(senderOf({}), { maxJsonValues })).toThrow(/maxJsonValues/)
  })
})

test.each(['xml', 7, null])('a body cannot be %j', (body) => {
  expect(() => senderOf({ body: untyped(body) })).toThrow(/body must be 'json', 'form' or a function/)
})

test('deliver posts what a test gives it', async () => {
  const receiver = createReceiver({
    sender: senderOf({}),
    verify: hmacSignature({ secret: 'x', header: 'y' }),
    logger: silent,
  })
  expect(await deliver(receiver, '{}')).toMatchObject({ status: 401 })
})
