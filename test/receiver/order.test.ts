import { describe, expect, test } from 'vitest'
import type { BodyReader, Delivery, Verification } from '../../src/index.ts'
import { encodePayload, samplePayload } from '../../src/testing/index.ts'
import { untyped } from '../support/untyped.ts'
import { answeringInbox, receiverWith } from './listening-receiver.ts'

const valid = encodePayload(samplePayload('encoding.finished'))
const json = { 'content-type': 'application/json' }

interface Faults {
  readonly method?: string
  readonly headers?: Record<string, string>
  readonly read?: ReturnType<BodyReader>
  readonly verification?: Verification
  readonly closed?: boolean
}

/** Makes a delivery with some faults, and returns the steps that the receiver took. */
async function pathOf({ method = 'POST', headers = json, read = valid, verification, closed }: Faults) {
  const steps: string[] = []
  const receiver = receiverWith({
    verify: {
      name: 'watched',
      needsBytes: true,
      verify() {
        steps.push('verify')
        return verification ?? { verified: true }
      },
    },
    inbox: answeringInbox(() => {
      steps.push('inbox')
      return 'accepted'
    }),
    eventKey: ({ key }) => {
      steps.push('parse')
      return key
    },
  }).onAny(() => {})
  if (closed) await receiver.close()
  const body: BodyReader = (limit) => {
    steps.push(`read ${limit}`)
    return read
  }
  const { outcome } = await receiver.receive({ method, url: '/', headers: new Headers(headers), body })
  return [...steps, outcome].join(' > ')
}

const text = { 'content-type': 'text/plain' }
const large = { 'content-length': '65537' }
const compressed = { 'content-encoding': 'gzip' }
const forged: Verification = { verified: false, reason: 'forged' }
const junk = new TextEncoder().encode('{')
const oversized = new Uint8Array(65_537)

describe('the path of a delivery', () => {
  test('reads, verifies, parses and accepts, in this order', async () => {
    expect(await pathOf({})).toBe('read 65536 > verify > parse > inbox > accepted')
  })

  test.each<[string, Faults, string]>([
    ['closing', { closed: true, method: 'GET', headers: text }, 'closing'],
    ['the method', { method: 'GET', headers: { ...text, ...large }, read: 'too_large' }, 'method_not_allowed'],
    ['the content type', { headers: { ...text, ...large, ...compressed } }, 'unsupported_media_type'],
    ['the content encoding', { headers: { ...json, ...large, ...compressed } }, 'unsupported_media_type'],
    ['the declared length', { headers: { ...json, ...large }, verification: forged }, 'too_large'],
    ['the length', { read: 'too_large', verification: forged }, 'read 65536 > too_large'],
    ['a reader that does not stop', { read: oversized, verification: forged }, 'read 65536 > too_large'],
    ['an incomplete body', { read: 'incomplete', verification: forged }, 'read 65536 > incomplete'],
    ['the verifier', { read: junk, verification: forged }, 'read 65536 > verify > unauthorized'],
    ['the payload', { read: junk }, 'read 65536 > verify > malformed'],
  ])('ends at %s', async (_, faults, path) => {
    expect(await pathOf(faults)).toBe(path)
  })

  test('is the same if the steps are asynchronous', async () => {
    expect(await pathOf({ read: Promise.resolve(valid) })).toBe('read 65536 > verify > parse > inbox > accepted')
    expect(await pathOf({ read: Promise.resolve('too_large' as const) })).toBe('read 65536 > too_large')
    expect(await pathOf({ read: Promise.reject(new Error('the socket broke')) })).toBe('read 65536 > internal')
  })
})

describe('the guard', () => {
  const answerTo = async (parts: Partial<Delivery>, headers: Record<string, string> = json) => {
    const receiver = receiverWith().onAny(() => {})
    const delivery = { method: 'POST', url: '/', headers: new Headers(headers), body: valid, ...parts }
    return (await receiver.receive(delivery)).outcome
  }
  const unread: Partial<Delivery> = { body: () => valid }

  test.each(['GET', 'HEAD', 'PUT', 'PATCH', 'DELETE', 'OPTIONS', 'post', ''])(
    'rejects the method %o',
    async (method) => {
      expect(await answerTo({ method })).toBe('method_not_allowed')
    },
  )

  test.each([
    'application/json',
    'Application/JSON',
    'application/json; charset=utf-8',
    'application/json;charset=UTF-8',
    'application/json ; charset=utf-8',
    'application/vnd.media+json',
    'application/cloudevents+json; charset=utf-8',
    '',
  ])('accepts the content type %o', async (type) => {
    expect(await answerTo({}, { 'content-type': type })).toBe('accepted')
  })

  test('accepts a delivery without a content type', async () => {
    expect(await answerTo({}, {})).toBe('accepted')
  })

  test.each([
    'text/plain',
    'text/json',
    'application/jsonp',
    'application/json-seq',
    'application/x-www-form-urlencoded',
    'multipart/form-data; boundary=application/json',
    'application/json, text/plain',
    'application/+json',
    'json',
  ])('rejects the content type %o', async (type) => {
    expect(await answerTo({}, { 'content-type': type })).toBe('unsupported_media_type')
  })

  test('rejects an encoded body, unless a parser has decoded it', async () => {
    for (const encoding of ['gzip', 'br', 'deflate', 'identity, gzip']) {
      const headers = { ...json, 'content-encoding': encoding }
      expect(await answerTo(unread, headers)).toBe('unsupported_media_type')
      expect(await answerTo({}, headers)).toBe('accepted')
      expect(await answerTo({ body: { parsed: JSON.parse(new TextDecoder().decode(valid)) } }, headers)).toBe(
        'accepted',
      )
    }
    for (const encoding of ['identity', 'Identity', '']) {
      expect(await answerTo(unread, { ...json, 'content-encoding': encoding })).toBe('accepted')
    }
  })

  test('believes a declared length only if it is too large', async () => {
    for (const length of ['0', '5', '-1', 'many', '', '65536']) {
      expect(await answerTo(unread, { ...json, 'content-length': length })).toBe('accepted')
    }
    for (const length of ['65537', '1e9', '9'.repeat(30)]) {
      expect(await answerTo(unread, { ...json, 'content-length': length })).toBe('too_large')
    }
  })

  test('accepts a body that is exactly as large as it may be', async () => {
    const receiver = receiverWith({ maxBodyBytes: valid.byteLength }).onAny(() => {})
    for (const body of [valid, () => valid, async () => valid]) {
      const { status } = await receiver.receive({ method: 'POST', url: '/', headers: new Headers(json), body })
      expect(status).toBe(200)
    }
  })

  test('answers a delivery whose parts are broken', async () => {
    const broken: Partial<Delivery>[] = [
      { body: untyped(undefined) },
      { body: untyped(null) },
      { body: untyped('text') },
      {
        headers: {
          get() {
            throw new Error('broken')
          },
        },
      },
    ]
    for (const parts of broken) expect(await answerTo(parts)).toMatch(/internal|body_consumed/)
  })
})
